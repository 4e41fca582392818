"""How the released rows are distributed: every column as a few bars, every pair as one number."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scrim.spec.columns import (
    CodeColumn,
    DateColumn,
    DatetimeColumn,
    IntegerColumn,
    LabelledColumn,
    OrdinalColumn,
    RealColumn,
)
from scrim.spec.schema import Attribute, Numeric, Schema
from synth.missing import kinds_in
from synth.queries.reading import Reading
from synth.table import Chunk, Table
from synth.table.linking import groups_in

MAX_CHARTS = 60
"""Maximum number of columns shown: the page must stay readable."""
MAX_CATEGORIES = 10
"""Largest number of categories of a chart, with one bar for all others."""
MAX_BINS = 24
"""Largest number of bins that a chart shows as declared."""
MAX_PLACED_BINS = 40
"""The same for bins that the data placed."""
INTERVALS = 20
"""Number of intervals for a numeric column without bins, or with too many."""
PAIR_ROWS = 100_000
"""Maximum number of rows, evenly spaced, on which dependence is computed."""
CHARTED_AT_ONCE = 2**18
"""Rows that are counted at a time."""

Bars = NDArray[np.uint8]
Number = IntegerColumn | RealColumn


@dataclass(frozen=True)
class Distribution:
    """A column in bars: categories one below another, numbers side by side."""

    name: str
    labels: list[str]
    shares: list[float]
    ends: tuple[str, str] | None
    """The declared bounds of numbers."""
    missing: float | None
    """The share of missing values; None if the column is not nullable."""
    note: str
    is_gathered: bool
    """Whether the last bar stands for all remaining categories."""
    bars: Bars
    """The bar of some of the rows, evenly spaced."""


@dataclass(frozen=True)
class Dependence:
    """The dependence between two columns of the released rows."""

    first: int
    second: int
    strength: float
    """Cramér's V: 0 for independent columns, 1 if one column determines the other."""


@dataclass(frozen=True)
class _Cells:
    """How the values of a column are grouped into bars; missing values have the last one."""

    labels: list[str]
    note: str
    of: Callable[[NDArray[Any]], NDArray[Any]]
    is_gathered: bool = False
    """Whether the last bar stands for all remaining categories."""


def distributions(schema: Schema, rows: Chunk) -> list[Distribution]:
    """The distribution of each of the first columns; those of groups are counted in groups."""
    shown = schema.attributes[:MAX_CHARTS]
    of_groups, starts = schema.columns_of_groups, groups_in(rows, schema)
    return [
        _distribution(
            column, schema, rows[column.name], starts if column.name in of_groups else None
        )
        for column in shown
    ]


def dependences(columns: Sequence[Distribution]) -> list[Dependence]:
    """Every pair of columns."""
    return [
        Dependence(i, j, cramers_v(columns[i].bars, columns[j].bars))
        for i, j in combinations(range(len(columns)), 2)
    ]


def cramers_v(first: Bars, second: Bars) -> float:
    """Cramér's V, corrected for its bias (Bergsma 2013)."""
    width = int(second.max()) + 1
    height = int(first.max()) + 1
    joint = np.bincount(first.astype(np.intp) * width + second, minlength=height * width)
    table = joint.reshape(height, width)
    table = table[table.any(axis=1)][:, table.any(axis=0)]
    rows, columns = table.shape
    number = int(table.sum())
    if min(rows, columns) < 2:
        return 0.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / number
    phi = float(((table - expected) ** 2 / expected).sum()) / number
    bias = (rows - 1) * (columns - 1) / (number - 1)
    levels = min(k - (k - 1) ** 2 / (number - 1) for k in (rows, columns))
    if levels <= 1:  # about as many levels as rows: the statistic is undefined
        return 0.0
    return min(1.0, math.sqrt(max(0.0, phi - bias) / (levels - 1)))


def _distribution(
    column: Attribute, schema: Schema, values: NDArray[Any], counted: NDArray[Any] | None = None
) -> Distribution:
    """Count a column piece by piece; there may be very many rows. Only some are `counted`, if given."""
    shown = values if counted is None else values[counted]
    if isinstance(column, LabelledColumn | OrdinalColumn):
        cells, ends = _categories(column, schema, shown), None
    else:
        cells, ends = _intervals(column), _ends(column)
    counts = np.zeros(len(cells.labels) + 1, np.int64)
    for piece in _numbers(column, schema, shown):
        counts += np.bincount(cells.of(piece), minlength=len(counts))
    few = values[:: -(-len(values) // PAIR_ROWS)]
    bars = np.concatenate([cells.of(piece) for piece in _numbers(column, schema, few)])
    shares = (counts / counts.sum()).tolist()
    return Distribution(
        name=column.name,
        labels=cells.labels,
        shares=shares[:-1],
        ends=ends,
        missing=shares[-1] if column.kinds else None,
        note=cells.note,
        is_gathered=cells.is_gathered,
        bars=bars.astype(np.uint8),
    )


def _numbers(column: Attribute, schema: Schema, values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Stored values as numbers, categories as codes, in pieces."""
    alone = schema.model_copy(update={"columns": [column]})
    starts = range(0, len(values), CHARTED_AT_ONCE)
    table = Table(alone, [{column.name: values[i : i + CHARTED_AT_ONCE]} for i in starts])
    for _, numbers in table.read(codes=[], numbers=[column.name]):
        yield numbers[column.name]


def _categories(column: Attribute, schema: Schema, values: NDArray[Any]) -> _Cells:
    """One bar per category, or the most common ones and one bar for the others."""
    reading = Reading.of(column)
    kinds = set(column.kinds)
    shown = [code for code, label in enumerate(column.code_labels) if label not in kinds]
    if isinstance(column, LabelledColumn):
        shown = list(range(len(column.labels)))
    labels = [column.code_labels[code] for code in shown]
    place = np.full(column.size, len(labels))
    place[shown] = np.arange(len(labels))
    notes = (
        [_note_on_groups(column)] if isinstance(column, CodeColumn) and column.is_grouped else []
    )
    is_gathered = len(labels) > MAX_CATEGORIES
    if is_gathered:
        counts = np.zeros(column.size, np.int64)
        for piece in _numbers(column, schema, values):
            counts += np.bincount(reading.codes(piece), minlength=column.size)
        order = np.argsort(-counts[shown], kind="stable")[: MAX_CATEGORIES - 1]
        gathered = np.full(len(labels) + 1, len(order))
        gathered[order] = np.arange(len(order))
        gathered[-1] = len(order) + 1
        place = gathered[place]
        notes.insert(0, f"the most common of {len(labels):,} categories")
        labels = [*(labels[i] for i in order), f"{len(labels) - len(order):,} others"]
    return _Cells(labels, "; ".join(notes), lambda piece: place[reading.codes(piece)], is_gathered)


def _note_on_groups(column: CodeColumn) -> str:
    """How codes were measured and released."""
    drawn = "the declared reference shares" if column.shares else "equal shares"
    return (
        f"{len(column.texts):,} codes, measured as {len(column.labels):,} codes and groups; codes of a "
        f"group were drawn by {drawn}"
    )


def _intervals(column: Numeric) -> _Cells:
    """The declared bins if they are few, single values if these are few, else equal intervals."""
    line = column.line
    edges, note = _edges(line)
    texts = [_text_of(column, edge) for edge in edges]
    labels = [f"[{a}, {b})" for a, b in pairwise(texts)]
    labels[-1] = labels[-1][:-1] + "]"
    if line is column and line.bins is not None and line.bins.shape and edges == line.edges:
        labels = line.code_labels[: len(labels)]  # which name single values
    if isinstance(line, IntegerColumn) and len(labels) == line.upper - line.lower + 1:
        labels = texts[:-1]
    inner, missing = np.array(edges[1:-1]), len(labels)

    def place(piece: NDArray[Any]) -> NDArray[Any]:
        found = np.searchsorted(inner, piece, side="right")
        return np.where(kinds_in(piece, len(column.kinds)) > 0, missing, found)

    return _Cells(labels, note, place)


def _ends(column: Numeric) -> tuple[str, str]:
    return _text_of(column, column.line.lower), _text_of(column, column.line.upper)


def _text_of(column: Numeric, number: float) -> str:
    """A bound or an edge, as in the released rows."""
    if isinstance(column, DateColumn | DatetimeColumn):
        return column.write(math.ceil(number))
    return _written(number)


def _written(number: float) -> str:
    """A bound or an edge: whole numbers in full."""
    return f"{number:.0f}" if number == int(number) and abs(number) < 1e15 else f"{number:.6g}"


def _edges(column: Number) -> tuple[Sequence[float], str]:
    most = MAX_PLACED_BINS if column.bins is not None and column.bins.shape else MAX_BINS
    if column.bins is not None and column.size <= most + len(column.kinds):
        # The last bin of a given width may be narrower, and whole numbers divide unevenly.
        widths = [b - a for a, b in pairwise(column.edges[:-1])] or [1.0]
        is_uneven = max(widths) > 1.5 * min(widths)
        return column.edges, "bins of unequal width, drawn with equal width" if is_uneven else ""
    lower, upper = float(column.lower), float(column.upper)
    if isinstance(column, IntegerColumn) and upper - lower < MAX_BINS:
        return [lower + i for i in range(int(upper - lower) + 1)] + [upper], ""
    return [lower + (upper - lower) * i / INTERVALS for i in range(INTERVALS)] + [upper], ""
