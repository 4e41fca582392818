"""Query classes: what they count, their sensitivity, and how each kind of model answers them."""

from synth.queries.binary_tree import TreeQueries
from synth.queries.block import QueryBlock, Single
from synth.queries.conjunction import ConjunctionQueries
from synth.queries.halfspace import HalfspaceQueries
from synth.queries.hierarchical import GroupSizeQueries, HierarchicalQueries
from synth.queries.marginal import Marginal
from synth.queries.marginal_part import MarginalPart
from synth.queries.query_set import QuerySet, compile_blocks, compile_workload

__all__ = [
    "ConjunctionQueries",
    "GroupSizeQueries",
    "HalfspaceQueries",
    "HierarchicalQueries",
    "Marginal",
    "MarginalPart",
    "QueryBlock",
    "QuerySet",
    "Single",
    "TreeQueries",
    "compile_blocks",
    "compile_workload",
]
