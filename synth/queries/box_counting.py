"""Summing the weights of points in boxes: the compiled loop for conjunctions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from synth.compiled import kept_on_disk

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Weights = NDArray[Any]
"""Integers or floats; sums have the same type and are exact for integers."""


@kept_on_disk
def sum_in_boxes(
    points: Floats,
    weights: Weights,
    sorted_by: int,
    start: Integers,
    dimension: Integers,
    low: Floats,
    high: Floats,
) -> Weights:
    """The sum of the weights of the points in each box.

    A point is a column of `points`; a dimension is a row. The sides of a box are those from its start to
    the next box's start; each requires low <= x < high in one dimension. The first sides are in the
    dimensions by which the points are sorted, and all but the last of these fix a single coordinate, so
    they hold for consecutive points.
    """
    totals = np.zeros(len(start) - 1, weights.dtype)
    inside = np.empty(len(weights), np.uint8)
    for box in range(len(totals)):
        first, end = 0, len(weights)
        for side in range(start[box], start[box] + sorted_by):
            ascending = points[dimension[side], first:end]
            end = first + np.searchsorted(ascending, high[side])
            first = first + np.searchsorted(ascending, low[side])
        length = end - first
        if length <= 0:
            continue
        inside[:length] = 1
        for side in range(start[box] + sorted_by, start[box + 1]):
            numbers = points[dimension[side], first:end]
            least, limit = low[side], high[side]
            for i in range(length):
                inside[i] &= (numbers[i] >= least) & (numbers[i] < limit)
        mine, total = weights[first:end], totals[box]
        for i in range(length):
            total += mine[i] * inside[i]
        totals[box] = total
    return totals
