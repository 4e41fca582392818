"""Measuring the grids of columns with adaptive bins, and placing the edges from the noisy counts.

The edges follow from journaled outcomes and public numbers (docs/privacy.md, section 5.2). The counts
of all levels of a column's grid are made consistent by generalised least squares (Hay et al. 2010), parts
without structure beyond the noise are merged, and bins are divided until there are as many as declared.
"""

import heapq
from bisect import bisect_left
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from scrim.spec.columns import Bins, BinShape, IntegerColumn, RealColumn
from scrim.spec.schema import Column
from synth.door import Door, RowCount
from synth.measurements import EXACT, Measurement
from synth.planning.plan import ReleasePlan
from synth.queries import compile_blocks

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LEAST_WIDTH = 2.0**-40
"""Smallest width of a cell in units of half the range. A cell may hold a single float, such as `upper` alone,
and the share of a part that such cells get must be a number."""
SIGNIFICANT = 3.0
"""Standard deviations of its noise that a part of the grid must hold to be divided further."""


def with_placed_bins(planned: ReleasePlan, door: Door, rows: RowCount) -> ReleasePlan:
    """Measure what places the edges of adaptive bins, and return the plan with the final bins."""
    if planned.binning is None:
        return planned
    grids = compile_blocks(planned.binning.blocks, planned.schema).blocks
    measured = [door.measure(grid, budget=planned.binning.each) for grid in grids]
    found = {grid.attributes[0]: each for grid, each in zip(grids, measured, strict=True)}

    def final(column: Column) -> Column:
        if column.name not in found:
            return column
        assert isinstance(column, IntegerColumn | RealColumn)
        return column.with_edges(
            place_bins(column, found[column.name], float(rows.value), rows.sigma)
        )

    columns = [final(column) for column in planned.schema.columns]
    return replace(planned, schema=planned.schema.model_copy(update={"columns": columns}))


def place_bins(
    column: IntegerColumn | RealColumn, measured: Measurement, rows: float, rows_sigma: float
) -> Bins:
    """The final bins of a column, from the measured counts of its grid and the number of rows."""
    levels = _levels(column, measured.values)
    missing = [values[len(starts) :].sum() for values, starts in levels]
    counts = [values[: len(starts)] for values, starts in levels]
    sigma = max(measured.sigma, EXACT)
    variance = sigma**2
    total = max(0.0, rows - float(np.mean(missing)))
    tree = _Tree.of(column)
    of_total = rows_sigma**2 + (1 + len(column.kinds)) * variance / len(levels)
    estimates = tree.consistent(counts, variance, total, of_total)
    parts = tree.parts(estimates, sigma)
    # Rounded, so that another machine, which may add up in another order, places the same edges.
    masses = np.rint(256 * np.concatenate([_spread(part, tree.widths) for part in parts]))
    starts = _divided(masses, _forced(column), column.size - len(column.kinds))
    return _bins(column, starts, parts, masses)


def _spread(part: "_Part", widths: Floats) -> Floats:
    inside = widths[part.start : part.end]
    return np.asarray(part.mass * inside / inside.sum())


def _forced(column: IntegerColumn | RealColumn) -> set[int]:
    """The finest cells at which a bin must start: the first, and those that separate special values."""
    line, finest = column.number_line, column.grid.starts[-1]
    needed = {start for value in line.special for start in line.alone(value)}
    return {0, *(bisect_left(finest, start) for start in needed)}


def _levels(
    column: IntegerColumn | RealColumn, values: Integers
) -> list[tuple[Floats, tuple[float, ...]]]:
    """The counts of each level, and the starts of its cells; kinds of missing values come after these."""
    sizes = [len(starts) + len(column.kinds) for starts in column.grid.starts]
    parts = np.split(values.astype(np.float64), np.cumsum(sizes)[:-1])
    return list(zip(parts, column.grid.starts, strict=True))


@dataclass(frozen=True)
class _Tree:
    """The cells of a grid: level by level, with the first child of each cell on the next level."""

    children: tuple[Integers, ...]
    """For each level but the last: where the children of each cell begin, and the end of the last."""
    widths: Floats
    """The widths of the finest cells, in units of half the range or of 1."""

    @classmethod
    def of(cls, column: IntegerColumn | RealColumn) -> "_Tree":
        starts = [np.array(level) for level in column.grid.starts]
        children = tuple(
            np.append(np.searchsorted(fine, coarse), len(fine)) for coarse, fine in pairwise(starts)
        )
        # In units of half the range, so that no sum overflows.
        unit = max(1.0, column.upper / 2 - column.lower / 2)
        widths = np.diff(np.append(starts[-1], column.grid.upper)) / unit
        if isinstance(column, IntegerColumn):
            widths[-1] += 1 / unit  # the last cell is closed
        return cls(children, np.maximum(widths, LEAST_WIDTH))

    def consistent(
        self, counts: list[Floats], variance: float, total: float, of_total: float
    ) -> list[Floats]:
        """The least-squares estimates of all cells, so that children add up to their parents."""
        estimates, variances = [counts[-1]], [np.full(len(counts[-1]), variance)]
        for level, starts in zip(counts[-2::-1], self.children[::-1], strict=True):
            sums = np.add.reduceat(estimates[0], starts[:-1])
            of_sums = np.add.reduceat(variances[0], starts[:-1])
            both = 1 / (1 / variance + 1 / of_sums)
            estimates.insert(0, both * (level / variance + sums / of_sums))
            variances.insert(0, both)
        of_sum = float(variances[0].sum())
        missed = (total - float(estimates[0].sum())) / (of_total + of_sum)
        estimates[0] = estimates[0] + variances[0] * missed
        for number, starts in enumerate(self.children):
            sizes = np.diff(starts)
            gap = estimates[number] - np.add.reduceat(estimates[number + 1], starts[:-1])
            scale = np.add.reduceat(variances[number + 1], starts[:-1])
            spread = np.repeat(gap / scale, sizes)
            estimates[number + 1] = estimates[number + 1] + variances[number + 1] * spread
        return estimates

    def parts(self, estimates: list[Floats], sigma: float) -> list["_Part"]:
        """Divide the grid from the top, as long as a cell holds more than noise."""
        leaves = [np.arange(len(estimates[-1]) + 1)]
        for starts in self.children[::-1]:
            leaves.insert(0, leaves[0][starts])
        whole = (slice(0, len(estimates[0])), max(0.0, float(estimates[0].sum())))
        waiting, found = [(0, *whole)], []
        while waiting:
            level, cells, mass = waiting.pop()
            ends = leaves[level][cells.start : cells.stop + 1]
            even = np.add.reduceat(self.widths[ends[0] : ends[-1]], ends[:-1] - ends[0])
            masses = _shrunk(estimates[level][cells], mass * even / even.sum(), sigma)
            for cell, each in enumerate(masses, start=cells.start):
                if level == len(self.children) or each <= SIGNIFICANT * sigma:
                    start, end = leaves[level][cell : cell + 2]
                    found.append(_Part(int(start), int(end), float(each)))
                else:
                    inside = slice(*self.children[level][cell : cell + 2])
                    waiting.append((level + 1, inside, float(each)))
        return sorted(found)


@dataclass(frozen=True, order=True)
class _Part:
    """Finest cells over which a mass is spread evenly."""

    start: int
    end: int
    mass: float


def _shrunk(estimates: Floats, even: Floats, sigma: float) -> Floats:
    """Estimates moved towards an even spread by as much as noise explains (James and Stein), then made
    non-negative with the same total."""
    off = estimates - even
    explained = len(off) * sigma**2 / max(float(off @ off), sigma**2)
    return _projected(even + max(0.0, 1 - explained) * off, float(even.sum()))


def _projected(values: Floats, total: float) -> Floats:
    """The nearest non-negative values with that total."""
    ordered = np.sort(values)[::-1]
    surplus = (np.cumsum(ordered) - total) / np.arange(1, len(values) + 1)
    kept = int(np.flatnonzero(ordered > surplus)[-1]) if total > 0 else 0
    return np.maximum(values - surplus[kept], 0) if total > 0 else np.zeros(len(values))


def _divided(masses: Floats, first: set[int], number: int) -> list[int]:
    """The first finest cell of each bin: divide the heaviest bin at its middle until there are enough.

    A cell that is heavier than a bin should be ends up alone, because its bin stays the heaviest until then.
    """
    below = np.concatenate([[0.0], np.cumsum(masses)])
    # Bins without mass are divided by their number of cells.
    waiting: list[tuple[float, int, int, int]] = []

    def wait(start: int, end: int) -> None:
        if end - start > 1:
            heapq.heappush(waiting, (-(below[end] - below[start]), start - end, start, end))

    starts = sorted(first)
    for start, end in pairwise([*starts, len(masses)]):
        wait(start, end)
    while len(starts) < number:
        _, _, start, end = heapq.heappop(waiting)
        middle = _middle(below, start, end)
        starts.append(middle)
        wait(start, middle)
        wait(middle, end)
    return sorted(starts)


def _middle(below: Floats, start: int, end: int) -> int:
    """The cell at which a bin is divided most evenly."""
    half = (below[start] + below[end]) / 2
    if below[end] <= below[start]:
        return (start + end) // 2
    # The cuts right before and right after the cell in which the middle is.
    after = start + 1 + int(np.searchsorted(below[start + 1 : end], half, side="right"))
    cuts = [cut for cut in (after - 1, after) if start < cut < end]
    return min(cuts, key=lambda cut: abs(float(below[cut] - half)))


def _bins(
    column: IntegerColumn | RealColumn, starts: list[int], parts: list[_Part], masses: Floats
) -> Bins:
    """Bins that start at these cells, with the parts as the shape inside them."""
    grid = column.grid
    finest = grid.starts[-1]
    edges = [*(finest[start] for start in starts), grid.upper]
    divided = sorted({*starts, *(part.start for part in parts)})
    shape = BinShape(
        edges=[*(finest[start] for start in divided), grid.upper],
        weights=[float(mass) for mass in np.add.reduceat(masses, divided)],
    )
    return Bins(edges=edges, shape=shape)
