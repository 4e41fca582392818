"""Workloads: items that expand to blocks of counting queries.

To add a query class, write its item and its block here, and its implementation in synth/queries.
"""

from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator, Field

from scrim.spec.base import Discriminated
from scrim.spec.schema import Schema
from scrim.spec.workload.binary_tree import BinaryTree, TreeBlock
from scrim.spec.workload.block import Block
from scrim.spec.workload.blocks import Blocks, refuse_many_blocks, refuse_many_tables
from scrim.spec.workload.conditions import ConjunctionBlock
from scrim.spec.workload.halfspaces import HalfspaceBlock, Halfspaces
from scrim.spec.workload.hierarchical import (
    NUMBER_OF_GROUPS,
    NUMBER_OF_INDIVIDUALS,
    GroupSizes,
    GroupSizesBlock,
    Hierarchical,
    HierarchicalBlock,
)
from scrim.spec.workload.marginals import MAX_BLOCKS, MarginalBlock, Marginals
from scrim.spec.workload.parts import PartBlock
from scrim.spec.workload.prefixes import Prefixes
from scrim.spec.workload.ranges import MAX_NAMED, Ranges

__all__ = [
    "MAX_BLOCKS",
    "MAX_ITEMS",
    "NUMBER_OF_GROUPS",
    "NUMBER_OF_INDIVIDUALS",
    "BinaryTree",
    "Block",
    "Blocks",
    "ConjunctionBlock",
    "GroupSizes",
    "GroupSizesBlock",
    "HalfspaceBlock",
    "Halfspaces",
    "Hierarchical",
    "HierarchicalBlock",
    "MarginalBlock",
    "Marginals",
    "PartBlock",
    "Prefixes",
    "Ranges",
    "TreeBlock",
    "Workload",
    "WorkloadItem",
    "columns_named",
    "expand",
]

MAX_ITEMS = 100
"""Largest number of items in a workload."""

WorkloadItem = Annotated[
    Marginals | Ranges | BinaryTree | Prefixes | Halfspaces | Hierarchical | GroupSizes,
    Discriminated("type"),
]
"""One item of a workload."""


def _refuse_many_named(items: list[WorkloadItem]) -> list[WorkloadItem]:
    named = sum(len(item.queries or ()) for item in items if isinstance(item, Ranges))
    if named > MAX_NAMED:
        raise ValueError(
            f"the items name {named:,} queries in total, more than {MAX_NAMED:,}; name fewer, or ask for "
            "random ones"
        )
    return items


Workload = Annotated[
    list[WorkloadItem],
    Field(min_length=1, max_length=MAX_ITEMS),
    AfterValidator(_refuse_many_named),
]
"""The queries of a release: items that are answered together."""


def columns_named(items: Iterable[WorkloadItem]) -> list[str]:
    """The columns that items mention by name, each once."""
    found: dict[str, None] = {}
    for item in items:
        sets = getattr(item, "attributes", None) or getattr(item, "queries", None) or ()
        for names in sets:
            found |= dict.fromkeys(names)
    return list(found)


def expand(items: Iterable[WorkloadItem], schema: Schema) -> Blocks:
    """The blocks of a workload, each once, in order; raises SpecError if there are too many."""
    expanded: list[list[Block]] = []
    large: list[tuple[str, ...]] = []
    for item in items:
        expanded.append(item.expand(schema))
        large += item.left_out(schema) if isinstance(item, Marginals) else []
        # Those that are left out were listed too, so they count.
        refuse_many_blocks(sum(map(len, expanded)) + len(large))
    blocks = Blocks(expanded, schema, left_out=large)
    refuse_many_tables(blocks, schema)
    return blocks
