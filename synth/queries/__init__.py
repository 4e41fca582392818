"""Query classes: what is counted, how sensitive it is, and how each kind of model answers it."""

from synth.queries.group import QueryGroup, Sensitivity, Single
from synth.queries.marginal import Marginal
from synth.queries.query_set import QuerySet, compile_workload

__all__ = ["Marginal", "QueryGroup", "QuerySet", "Sensitivity", "Single", "compile_workload"]
