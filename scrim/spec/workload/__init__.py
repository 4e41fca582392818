"""What is asked of the data: items that stand for groups of counting queries.

To add a query class, write its item and its group here, and what they mean in synth/queries.
"""

from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator, Field

from scrim.spec.base import ToldApartBy
from scrim.spec.schema import Schema
from scrim.spec.workload.binary_tree import BinaryTree, TreeGroup
from scrim.spec.workload.conditions import ConjunctionGroup
from scrim.spec.workload.group import Group
from scrim.spec.workload.groups import Groups, refuse_many_groups, refuse_many_tables
from scrim.spec.workload.halfspaces import HalfspaceGroup, Halfspaces
from scrim.spec.workload.hierarchical import (
    NUMBER_OF_GROUPS,
    NUMBER_OF_INDIVIDUALS,
    GroupSizes,
    GroupSizesGroup,
    Hierarchical,
    HierarchicalGroup,
)
from scrim.spec.workload.marginals import MAX_GROUPS, MarginalGroup, Marginals
from scrim.spec.workload.prefixes import Prefixes
from scrim.spec.workload.ranges import MAX_NAMED, Ranges

__all__ = [
    "MAX_GROUPS",
    "NUMBER_OF_GROUPS",
    "NUMBER_OF_INDIVIDUALS",
    "BinaryTree",
    "ConjunctionGroup",
    "Group",
    "GroupSizes",
    "GroupSizesGroup",
    "Groups",
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


def _refuse_many_named(items: list[WorkloadItem]) -> list[WorkloadItem]:
    named = sum(len(item.queries or ()) for item in items if isinstance(item, Ranges))
    if named > MAX_NAMED:
        raise ValueError(
            f"the items name {named:,} queries together, more than {MAX_NAMED:,}; name fewer, or ask for "
            "random ones"
        )
    return items


Workload = Annotated[
    list[WorkloadItem], Field(min_length=1, max_length=100), AfterValidator(_refuse_many_named)
]
"""What is asked: items whose queries are answered together."""


def expand(items: Iterable[WorkloadItem], schema: Schema) -> Groups:
    """The groups of a workload, each once, in order; SpecError where they are too many."""
    expanded: list[list[Group]] = []
    for item in items:
        expanded.append(item.expand(schema))
        refuse_many_groups(sum(map(len, expanded)))
    groups = Groups(expanded, schema)
    refuse_many_tables(groups, schema)
    return groups
