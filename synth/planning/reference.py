"""Tables of a reference shape, and how errors of their cells add up.

The true shares of a table's cells are unknown before data are read. Here the logarithm of the share of a
random row's cell is normal with variance `spread * log(cells)`; the shares then sum to 1 only if its mean is
`-log(cells) + variance / 2`. The spread is the only constant of the shape (synth/planning/expected.py).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

MEAN_ABSOLUTE = math.sqrt(2 / math.pi)
"""The mean of |x| under a standard Gaussian."""
LEAST_ERROR, HALVINGS = 1e-9, 12
"""Where the search for the largest error starts, and its steps, which end within 0.3% of it."""


@dataclass(frozen=True)
class ReferenceTable:
    """A table of that many cells."""

    cells: float
    spread: float

    @property
    def variance(self) -> float:
        """The variance of the logarithm of the share of a random row's cell."""
        return self.spread * math.log(self.cells)

    @property
    def mean(self) -> float:
        """Its mean."""
        return self.variance / 2 - math.log(self.cells)


@lru_cache(maxsize=50_000)
def noise_left(shape: ReferenceTable, noise: float) -> float:
    """The summed absolute error of all cells with this noise: a fit sets cells below it to about 0."""
    if shape.cells <= 1 or noise <= 0:
        return 0.0
    if noise >= 1:
        return 1.0
    deviation, at = math.sqrt(shape.variance), math.log(noise)
    below = rows_below(shape, noise)
    above = shape.cells * noise * _normal((shape.mean - shape.variance - at) / deviation)
    return below + above


def rows_below(shape: ReferenceTable, noise: float) -> float:
    """The share of the rows in cells with a smaller share than this."""
    if shape.cells <= 1:
        return 0.0
    return _normal((math.log(noise) - shape.mean) / math.sqrt(shape.variance))


@lru_cache(maxsize=50_000)
def cells_above(shape: ReferenceTable, share: float) -> float:
    """The number of cells with a larger share than this."""
    if shape.cells <= 1:
        return shape.cells
    deviation = math.sqrt(shape.variance)
    return shape.cells * _normal((shape.mean - shape.variance - math.log(share)) / deviation)


@lru_cache(maxsize=50_000)
def largest_cell(shape: ReferenceTable) -> float:
    """The share that the largest cell exceeds with probability one half."""
    return largest_of_all([shape])


def largest_of_all(shapes: Sequence[ReferenceTable], times: float = 1.0) -> float:
    """The same of the largest cell of several tables, each of which stands for some alike."""
    return _exceeded_by_one(
        lambda share: times * sum(cells_above(shape, share) for shape in shapes)
    )


def likely_largest(tables: Sequence["NoisyTable"]) -> float:
    """The error that the largest one exceeds with probability one half, if errors are independent."""
    return _exceeded_by_one(lambda error: sum(each.cells_beyond(error) for each in tables))


def _exceeded_by_one(number_beyond: Callable[[float], float]) -> float:
    """The value beyond which there is some cell with probability one half, if cells are independent."""
    low, high = LEAST_ERROR, 1.0
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if number_beyond(middle) > math.log(2) else (low, middle)
    return high


@dataclass(frozen=True)
class NoisyTable:
    """A table, or several alike, with Gaussian errors."""

    shape: ReferenceTable
    noise: float
    """The standard deviation of the error of a cell, as a share of the rows."""
    times: float = 1.0
    clipped: bool = True
    """Whether errors of cells below the noise are no larger than the cells."""

    def cells_beyond(self, error: float) -> float:
        """The expected number of cells with a larger error than this."""
        if not self.noise:
            return 0.0
        cells = cells_above(self.shape, error) if self.clipped else self.shape.cells
        return self.times * cells * 2 * _normal(-error / self.noise)


@lru_cache(maxsize=50_000)
def sampling_error(shape: ReferenceTable, rows: int) -> float:
    """The summed absolute error of all cells if rows are drawn independently."""
    if shape.cells <= 1:
        return 0.0
    deviation, at = math.sqrt(shape.variance), math.log(MEAN_ABSOLUTE**2 / 4 / rows)
    # A cell of fewer rows is mostly drawn not at all, or once.
    below = 2 * _normal((at - shape.mean) / deviation)
    whole = math.exp(shape.variance / 8 - shape.mean / 2)
    above = _normal((shape.mean - shape.variance / 2 - at) / deviation)
    return min(2.0, below + MEAN_ABSOLUTE / math.sqrt(rows) * whole * above)


def _normal(deviations: float) -> float:
    """The distribution function of a standard Gaussian."""
    return math.erfc(-deviations / math.sqrt(2)) / 2
