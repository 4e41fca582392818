"""The values that the cells of each column may take, and the places between the cuts of its range.

The values that numbers are compared with cut a column's range into places. A condition then holds at
consecutive places, and the code of a number in a table follows from its place.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from scrim.spec.columns import IntegerColumn, LabelledColumn, RealColumn
from scrim.spec.schema import Attribute, Schema
from synth.genetic.compiled import compiled
from synth.genetic.ragged import Flags, Floats, Integers, joined, starts
from synth.missing import LIMIT, STEP, kinds_in, numbers_of_kinds
from synth.table.grid import grid_limits

MISSING_SHARE = 0.1
"""Share of missing values among random values of a nullable numeric column."""


class Columns(NamedTuple):
    """One element for each attribute of the schema, in order.

    Categories, integers and numbers with decimals are (first + k) / scale for k below `steps`.
    """

    is_category: Flags
    """Whether cells are codes (the last one is missing) rather than numbers or NaN."""
    lower: Floats
    upper: Floats
    first: Floats
    steps: Floats
    """Number of different values; 0 if all numbers between the bounds are allowed."""
    scale: Floats
    missing_share: Floats
    """Probability that a random value is missing."""
    kinds: Integers
    """Number of kinds of missing numbers, of equal probability (synth/missing.py)."""
    cut_start: Integers
    cuts: Floats
    """The cuts of the range of numbers: a number's place is the number of cuts that are not above it."""

    def cuts_of(self, column: int) -> Floats:
        """The cuts of one column."""
        return self.cuts[self.cut_start[column] : self.cut_start[column + 1]]

    def draw(self, rows: int, rng: np.random.Generator) -> Floats:
        """Draw rows of cells that are uniform over the values of their column."""
        shares = rng.random((rows, len(self.steps)))
        on_grid = self.first + np.minimum(np.floor(shares * self.steps), self.steps - 1)
        between = np.minimum(self.lower + shares * (self.upper - self.lower), self.upper)
        values = np.where(self.steps > 0, on_grid / self.scale, between)
        missing = np.where(rng.random(values.shape) < self.missing_share, np.nan, values)
        for column in np.flatnonzero(self.kinds > 1):
            found = np.isnan(missing[:, column])
            kinds = rng.integers(self.kinds[column], size=found.sum())
            missing[found, column] = numbers_of_kinds(self.kinds[column])[kinds]
        return missing

    def places(self, values: Floats) -> Integers:
        """The place of each cell: a code, a number's place, or one after all numbers if it is missing."""
        places = np.empty(values.shape, np.int64)
        for column, numbers in enumerate(values.T):
            if self.is_category[column]:
                places[:, column] = numbers
                continue
            cuts = self.cuts_of(column)
            found = np.searchsorted(cuts, numbers, side="right")
            kinds = kinds_in(numbers, self.kinds[column])
            places[:, column] = np.where(kinds > 0, len(cuts) + kinds, found)
        return places


def new_columns(schema: Schema, cuts: Mapping[str, set[float]]) -> Columns:
    """Build the columns of a schema; `cuts` are those of the numeric ones."""
    attributes = schema.attributes
    ranges = np.array([_range_of(column) for column in attributes], np.float64)
    lower, upper, first, steps, scale = np.ascontiguousarray(ranges.T)
    is_category = np.array([isinstance(column, LabelledColumn) for column in attributes])
    kinds = [0 if isinstance(c, LabelledColumn) else len(c.apart) for c in attributes]
    ordered = [sorted(cuts.get(column.name, ())) for column in attributes]
    return Columns(
        is_category=is_category,
        lower=lower,
        upper=upper,
        first=first,
        steps=steps,
        scale=scale,
        missing_share=np.where(np.array(kinds) > 0, MISSING_SHARE, 0.0),
        kinds=np.array(kinds, np.int64),
        cut_start=starts(ordered),
        cuts=np.array(joined(ordered), np.float64),
    )


def _range_of(column: Attribute) -> tuple[float, float, float, float, float]:
    """Bounds, then first, steps and scale."""
    if isinstance(column, LabelledColumn):
        return 0, column.size - 1, 0, column.size, 1
    line = column.line
    lower, upper = float(line.lower), float(line.upper)
    if isinstance(line, IntegerColumn):
        return lower, upper, lower, upper - lower + 1, 1
    return lower, upper, *_grid_of(line)


def _grid_of(column: RealColumn) -> tuple[float, float, float]:
    """First, steps and scale of a column of real numbers."""
    if column.decimals is None:
        return 0, 0, 1
    scale = 10.0**column.decimals
    first, last = (float(limit) for limit in grid_limits(column.lower, column.upper, scale))
    # Beyond 2^53 floats are coarser than the decimals, and a stored number is not rounded.
    is_exact = max(abs(first), abs(last)) < 2.0**53
    return (first, last - first + 1, scale) if is_exact else (0, 0, 1)


@compiled
def draw_value(columns: Columns, column: int, rng: np.random.Generator) -> float:
    """Draw a value of the column uniformly."""
    if rng.random() < columns.missing_share[column]:
        kinds = columns.kinds[column]
        kind = min(math.floor(rng.random() * kinds), kinds - 1) if kinds > 1 else 0
        return float(-kind * STEP) if kind > 0 else math.nan
    lower, upper, steps = columns.lower[column], columns.upper[column], columns.steps[column]
    if steps == 0:
        return float(min(lower + rng.random() * (upper - lower), upper))
    step = min(math.floor(rng.random() * steps), steps - 1)
    return float((columns.first[column] + step) / columns.scale[column])


@compiled
def place_of(columns: Columns, column: int, value: float) -> int:
    """The place of a value."""
    if columns.is_category[column]:
        return int(value)
    start, end = columns.cut_start[column], columns.cut_start[column + 1]
    if math.isnan(value):
        return int(end - start + 1)
    if columns.kinds[column] > 1 and value < LIMIT:
        return int(end - start + 1 + round(-value / STEP))
    low, high = start, end
    while low < high:
        middle = (low + high) // 2
        if columns.cuts[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return int(low - start)
