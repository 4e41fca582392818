"""Query classes: what is counted, how sensitive it is, and how each kind of model answers it."""

from synth.queries.binary_tree import BinaryTree
from synth.queries.block import QueryBlock, Single
from synth.queries.conjunction import Conjunctions
from synth.queries.halfspace import Halfspaces
from synth.queries.hierarchical import GroupSizes, Hierarchical
from synth.queries.marginal import Marginal
from synth.queries.query_set import QuerySet, compile_blocks, compile_workload

__all__ = [
    "BinaryTree",
    "Conjunctions",
    "GroupSizes",
    "Halfspaces",
    "Hierarchical",
    "Marginal",
    "QueryBlock",
    "QuerySet",
    "Single",
    "compile_blocks",
    "compile_workload",
]
