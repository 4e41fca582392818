"""What further sets of rows cost: no budget, but fits, memory and storage (`outputs.draws`)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scrim.spec.columns import (
    DateColumn,
    DatetimeColumn,
    IntegerColumn,
    LabelledColumn,
    OrdinalColumn,
)
from scrim.spec.errors import SpecError
from scrim.spec.release import ReleaseSpec
from scrim.spec.schema import Attribute, Schema
from synth.planning.spending import Draws, Plan

REAL_CHARACTERS = 18
"""A real number without declared decimals, in a CSV file."""
PARQUET_REAL_BYTES = 8
"""A double."""


@dataclass(frozen=True)
class RedrawCost:
    """What further sets of rows add to a release."""

    sets: int
    fits: int
    """All models that are fitted: the release takes about this many times as long as without further sets."""
    memory_bytes: int | None
    """The first model and its rows, which stay in memory; None if the size of the fit is unknown."""
    storage_bytes: int
    """About the size of all further files."""


def refuse_redraws(release: ReleaseSpec, spending: Plan) -> None:
    """Refuse further sets of rows where no counts are measured, so that there is no noise to simulate."""
    if release.redraws and isinstance(spending, Draws):
        raise SpecError(
            f"{release.mechanism.name} measures no counts, so the effect of its noise cannot be simulated; "
            "leave outputs.draws out, or use a mechanism that measures, such as aim"
        )


def redraw_cost(
    release: ReleaseSpec, schema: Schema, *, fit_bytes: int | None, output_bytes: int
) -> RedrawCost | None:
    """The cost of a release's further sets of rows; None if it has none."""
    if not release.redraws or release.synthetic_rows is None:
        return None
    cells = sum(_cell_bytes(release, column, schema) for column in schema.attributes)
    return RedrawCost(
        sets=release.redraws,
        fits=1 + release.redraws,
        memory_bytes=None if fit_bytes is None else fit_bytes + output_bytes,
        storage_bytes=math.ceil(release.redraws * release.synthetic_rows * cells),
    )


def _cell_bytes(release: ReleaseSpec, column: Attribute, schema: Schema) -> float:
    """The mean size of a column's cells of one row or group, in all formats; groups count as full."""
    is_repeated = schema.is_linked and column.name not in schema.columns_of_groups
    size = {"csv": _csv_bytes(column), "parquet": _parquet_bytes(column)}
    return (schema.places if is_repeated else 1) * sum(
        size[each] for each in release.outputs.formats
    )


def _csv_bytes(column: Attribute) -> float:
    """The mean length of a value, and its separator."""
    if isinstance(column, LabelledColumn):
        return 1 + _mean_length(column.texts)
    if isinstance(column, OrdinalColumn):
        return 1 + _mean_length(column.texts)
    if isinstance(column, DateColumn | DatetimeColumn):
        return 1 + len(column.write(0))
    whole = max(len(f"{bound:.0f}") for bound in (column.lower, column.upper))
    if isinstance(column, IntegerColumn):
        return 1 + whole
    return 1 + (REAL_CHARACTERS if column.decimals is None else whole + 1 + column.decimals)


def _parquet_bytes(column: Attribute) -> float:
    """Categories and integers take about as many bits as their number of values needs."""
    if isinstance(column, LabelledColumn):
        return math.log2(len(column.texts) + 2) / 8
    line = column.line
    if isinstance(line, IntegerColumn):
        return math.log2(line.upper - line.lower + 2) / 8
    return PARQUET_REAL_BYTES


def _mean_length(texts: Sequence[str]) -> float:
    return sum(len(text.encode()) for text in texts) / len(texts)
