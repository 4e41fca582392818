"""What places the edges of adaptive bins, and at what price (docs/privacy.md, section 5.2)."""

import math
from collections.abc import Collection
from dataclasses import dataclass

from scrim.spec.columns import (
    DEFAULT_ADAPTIVE,
    Bins,
    DateBins,
    DateColumn,
    DatetimeColumn,
    IntegerColumn,
    RealColumn,
)
from scrim.spec.errors import SpecError
from scrim.spec.mechanism import MechanismSpec
from scrim.spec.release import AskedRelease
from scrim.spec.schema import Column, Schema
from scrim.spec.workload import Marginals
from scrim.spec.workload.grid import GridBlock

SHARE_FOR_A_COLUMN, MOST_FOR_BINS = 0.01, 0.1
"""The default share of a release's budget: for each column with adaptive bins, and at most."""


@dataclass(frozen=True)
class Binning:
    """The measurements that place edges, in units of 1e-12 rho."""

    blocks: tuple[GridBlock, ...]
    """The grid of each column whose bins are adaptive."""
    each: int
    """Units for measuring one of them."""

    @property
    def columns(self) -> list[str]:
        """The names of these columns."""
        return [block.attributes[0] for block in self.blocks]


def with_bins(
    release: AskedRelease, schema: Schema, columns: Collection[str] | None = None
) -> Schema:
    """Give adaptive bins to numbers that declare none, if the release reads them as cells.

    Marginals do, and so do mechanisms that release rows of discrete cells. `columns` are those that
    are released, if this was decided before: earlier versions left such numbers out.
    """
    if schema.is_linked:
        return schema
    needed = _needed(release, schema)
    if columns is not None:
        needed.intersection_update(columns)
    binned = [_binned(column) if column.name in needed else column for column in schema.columns]
    return without_unread(release, schema.model_copy(update={"columns": binned}))


def without_unread(release: AskedRelease, schema: Schema) -> Schema:
    """Drop adaptive bins of numbers that the named mechanism does not read as cells."""
    if schema.is_linked or not isinstance(release.mechanism, MechanismSpec):
        return schema
    needed = _needed(release, schema)
    columns = [
        column.model_copy(update={"bins": None})
        if awaits_edges(column) and column.name not in needed
        else column
        for column in schema.columns
    ]
    return schema.model_copy(update={"columns": columns})


def _binned(column: Column) -> Column:
    """The column with bins: adaptive ones for numbers, equal ones for dates."""
    if isinstance(column, IntegerColumn | RealColumn) and column.bins is None:
        return column.model_copy(update={"bins": Bins(adaptive=DEFAULT_ADAPTIVE)})
    if isinstance(column, DateColumn | DatetimeColumn) and column.bins is None:
        count = min(DEFAULT_ADAPTIVE, column.line.upper + 1)
        return column.model_copy(update={"bins": DateBins(count=count)})
    return column


def _needed(release: AskedRelease, schema: Schema) -> set[str]:
    """The columns that are read as cells."""
    mechanism = release.mechanism
    if isinstance(mechanism, MechanismSpec) and mechanism.needs_bins and mechanism.releases_rows:
        return set(schema.names)
    needed: set[str] = set()
    for item in (*release.workload, *(mechanism.measure or ())):
        if isinstance(item, Marginals):
            named = item.attributes or [schema.names]
            needed.update(name for names in named for name in names)
    if needed and not isinstance(mechanism, MechanismSpec):
        # Most mechanisms that `auto` may choose read cells.
        needed.update(release.outputs.columns or ())
    return needed


def awaits_edges(column: Column) -> bool:
    """Whether a column's bins are placed by noisy counts."""
    return isinstance(column, IntegerColumn | RealColumn) and column.awaits_edges


def bins_share(release: AskedRelease, schema: Schema) -> float:
    """The share of the budget for placing edges; 0 if no released column needs it."""
    number = sum(map(awaits_edges, schema.attributes))
    if not number:
        return 0.0
    return release.bins_share or min(MOST_FOR_BINS, SHARE_FOR_A_COLUMN * number)


def plan_binning(units: int, schema: Schema) -> Binning | None:
    """Divide the units equally among the columns; refuse linked tables and too few units."""
    columns = [column.name for column in schema.attributes if awaits_edges(column)]
    if not columns:
        return None
    if schema.is_linked:
        raise SpecError(
            f"column {columns[0]!r} has adaptive bins, which releases of two linked tables do not support; "
            "declare a width, count or edges"
        )
    each = math.floor(units / len(columns))
    if each < 1:
        raise SpecError(
            "the budget is too small to place the edges of adaptive bins; increase it or bins_share, or "
            "declare a width, count or edges"
        )
    return Binning(tuple(GridBlock((name,)) for name in columns), each)
