"""What is asked of the data: items that stand for groups of counting queries.

To add a query class, write its item and its group here, and what they mean in synth/queries.
"""

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from synth.spec.base import ToldApartBy
from synth.spec.schema import Schema
from synth.spec.workload.binary_tree import BinaryTree, TreeGroup
from synth.spec.workload.conditions import ConjunctionGroup
from synth.spec.workload.group import Group
from synth.spec.workload.halfspaces import HalfspaceGroup, Halfspaces
from synth.spec.workload.hierarchical import (
    NUMBER_OF_GROUPS,
    NUMBER_OF_INDIVIDUALS,
    GroupSizes,
    GroupSizesGroup,
    Hierarchical,
    HierarchicalGroup,
)
from synth.spec.workload.marginals import MAX_GROUPS, MarginalGroup, Marginals
from synth.spec.workload.prefixes import Prefixes
from synth.spec.workload.ranges import Ranges

__all__ = [
    "MAX_GROUPS",
    "NUMBER_OF_GROUPS",
    "NUMBER_OF_INDIVIDUALS",
    "BinaryTree",
    "ConjunctionGroup",
    "Group",
    "GroupSizes",
    "GroupSizesGroup",
    "HalfspaceGroup",
    "Halfspaces",
    "Hierarchical",
    "HierarchicalGroup",
    "MarginalGroup",
    "Marginals",
    "Prefixes",
    "Ranges",
    "TreeGroup",
    "Workload",
    "WorkloadItem",
    "expand",
]

WorkloadItem = Annotated[
    Marginals | Ranges | BinaryTree | Prefixes | Halfspaces | Hierarchical | GroupSizes,
    ToldApartBy("type"),
]
"""One item of a workload."""

Workload = Annotated[list[WorkloadItem], Field(min_length=1, max_length=100)]
"""What is asked: items whose queries are answered together."""


def expand(items: Iterable[WorkloadItem], schema: Schema) -> list[Group]:
    """The groups of a workload, each once, in order."""
    return list(dict.fromkeys(group for item in items for group in item.expand(schema)))
