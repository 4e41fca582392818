"""The columns of a release: those that its queries mention, and those that `outputs.columns` names.

Queries are listed from the full declared schema, so that a random choice by seed does not depend on which
columns are released.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from scrim.spec.errors import SpecError
from scrim.spec.mechanism import Gaussian
from scrim.spec.release import AskedRelease
from scrim.spec.schema import Schema
from scrim.spec.workload import (
    MAX_ITEMS,
    BinaryTree,
    Block,
    Blocks,
    Hierarchical,
    HierarchicalBlock,
    MarginalBlock,
    Marginals,
    TreeBlock,
    WorkloadItem,
    expand,
)
from synth.planning.pace import columns_of

OPENING_LEVELS = 5
"""Levels of the tree that measures a column of numbers without bins."""

Release = TypeVar("Release", bound=AskedRelease)


@dataclass(frozen=True)
class Queries:
    """The queries of a release's workload, and those that it names to be measured."""

    asked: Blocks
    named: Blocks

    @property
    def columns(self) -> set[str]:
        """All columns that some query mentions."""
        return set(columns_of((*self.asked, *self.named)))


def list_queries(release: AskedRelease, schema: Schema) -> Queries:
    """List the queries of a release, from the full declared schema."""
    named = release.mechanism.measure or []
    return Queries(expand(release.workload, schema), expand(named, schema))


def project_to_released(
    release: AskedRelease,
    schema: Schema,
    queries: Queries,
    *,
    columns: Sequence[str] | None = None,
) -> Schema:
    """Return the schema of the released columns: `columns`, if they were already decided."""
    if columns is not None:
        return schema.project(set(columns))
    released = schema.project(queries.columns.union(release.outputs.columns or ()))
    if not released.attributes:
        raise SpecError(
            "no query mentions a column, so the release would have no columns; ask about one in the "
            "workload, or name one in outputs.columns"
        )
    return released


def complete(release: Release, schema: Schema) -> Release:
    """Add workload items about the columns of `outputs.columns` that no query mentions.

    A release that is complete is returned as it is.
    """
    named = release.outputs.columns or []
    _refuse_unknown(named, schema)
    mentioned = list_queries(release, schema).columns if named else set()
    items = _items_about([name for name in named if name not in mentioned], schema)
    if not items:
        return release
    mechanism = release.mechanism
    changes: dict[str, Any] = {}
    if mechanism.measure is not None:
        changes["measure"] = _extended(mechanism.measure, items)
    if isinstance(mechanism, Gaussian) and mechanism.weights is not None:
        changes["weights"] = [*mechanism.weights, *(1.0 for _ in items)]
    return release.model_copy(
        update={
            "workload": _extended(release.workload, items),
            "mechanism": mechanism.model_copy(update=changes),
        }
    )


def promised(release: AskedRelease, schema: Schema, asked: Blocks) -> tuple[Block, ...]:
    """The one-way marginals of `outputs.columns`, which are measured by any mechanism that measures."""
    alone = (column_alone(name, schema) for name in release.outputs.columns or ())
    known = set(asked)
    return tuple(block for block in alone if block in known)


def column_alone(name: str, schema: Schema) -> Block:
    """The distribution of one column, counted at its own level if rows are linked."""
    if schema.is_linked:
        return HierarchicalBlock((name,), "group" if _is_of_groups(name, schema) else "individual")
    return MarginalBlock((name,)) if name in schema.sizes else TreeBlock((name,), OPENING_LEVELS)


def _items_about(names: Sequence[str], schema: Schema) -> list[WorkloadItem]:
    """Workload items for each column alone."""
    if schema.is_linked:
        of_groups = [[name] for name in names if _is_of_groups(name, schema)]
        own = [[name] for name in names if not _is_of_groups(name, schema)]
        found: list[WorkloadItem] = []
        if of_groups:
            found.append(Hierarchical(type="hierarchical", attributes=of_groups, levels=["group"]))
        if own:
            found.append(Hierarchical(type="hierarchical", attributes=own, levels=["individual"]))
        return found
    binned = [[name] for name in names if name in schema.sizes]
    numbers = [[name] for name in names if name not in schema.sizes]
    items: list[WorkloadItem] = []
    if binned:
        items.append(Marginals(type="marginals", attributes=binned))
    if numbers:
        items.append(BinaryTree(type="binary_tree", attributes=numbers, levels=OPENING_LEVELS))
    return items


def _is_of_groups(name: str, schema: Schema) -> bool:
    return name in schema.columns_of_groups


def _extended(items: Sequence[WorkloadItem], more: Sequence[WorkloadItem]) -> list[WorkloadItem]:
    if len(items) + len(more) > MAX_ITEMS:
        raise SpecError(
            f"outputs.columns adds an item to the workload, which then has more than {MAX_ITEMS}; ask "
            "about these columns in one of the other items"
        )
    return [*items, *more]


def _refuse_unknown(names: Sequence[str], schema: Schema) -> None:
    declared = {column.name: column for column in schema.columns}
    released = [column.name for column in schema.attributes]
    for name in names:
        if name not in declared:
            raise SpecError(
                f"outputs.columns names {name!r}, but the schema has no such column; it has "
                f"{', '.join(released)}"
            )
        if name not in released:
            raise SpecError(
                f"outputs.columns names {name!r}, which is an identifier; identifiers are never released"
            )
