"""Sums of weights of the rows that satisfy conjunctions; with weights of one, counts.

Conjunctions that begin with the same columns are processed together. The rows are sorted by the first
of these columns, or by the first two if the first is a category. The conditions on those columns hold
for consecutive rows; the other conditions are compared row by row.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from os import cpu_count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scrim.spec.columns import LabelledColumn
from scrim.spec.schema import Attribute
from synth.queries.box_counting import Weights, sum_in_boxes
from synth.queries.condition_arrays import ConditionArrays, Floats, Integers

Columns = Mapping[str, NDArray[Any]]

CELLS_AT_ONCE = 2**22
"""Limit of rows times columns that are processed together."""
SUMMED_AT_ONCE = 2**16
"""Limit of rows that are summed at once, so that they stay in the processor's caches."""
WORTH_SORTING = 10
"""Number of conjunctions per column from which sorting the rows saves time."""


class ConditionRows:
    """Some rows as a matrix: one line per column, numbers without NaN."""

    def __init__(self, matrix: Floats, weights: Weights) -> None:
        self.matrix = matrix
        self.weights = weights
        self._by_one: dict[int, Integers] = {}

    def order(self, columns: tuple[int, ...]) -> Integers:
        """The order that sorts the rows by the first column, then by the second if there is one."""
        *first, last = columns
        if last not in self._by_one:
            self._by_one[last] = np.argsort(self.matrix[last])
        order = self._by_one[last]
        for column in first:
            codes = self.matrix[column]
            # Small codes are sorted much faster than numbers.
            small = codes.astype(np.uint16 if codes.max(initial=0) < 2**16 else np.int64)
            order = order[np.argsort(small[order], kind="stable")]
        return order


@dataclass(frozen=True)
class SortedBoxes:
    """Conjunctions that are evaluated on rows sorted by some columns."""

    sorted_by: tuple[int, ...]
    columns: Integers
    """The columns with a condition."""
    query: Integers
    start: Integers
    """The first condition of each conjunction."""
    dimension: Integers
    """The position of each condition's column among `columns`."""
    low: Floats
    high: Floats

    def sums(self, rows: ConditionRows) -> Weights:
        """The sum of the weights of the rows that satisfy each conjunction."""
        points, weights = rows.matrix[self.columns], rows.weights
        if self.sorted_by:
            order = rows.order(self.sorted_by)
            points, weights = np.take(points, order, axis=1), weights[order]
        return sum_in_boxes(
            points,
            weights,
            len(self.sorted_by),
            self.start,
            self.dimension,
            self.low,
            self.high,
        )


class ConjunctionSums:
    """A plan for summing the weights of the rows that satisfy each conjunction."""

    def __init__(self, conditions: ConditionArrays, columns: Sequence[Attribute]) -> None:
        self._queries = conditions.queries
        self._names = [column.name for column in columns]
        self._boxes = list(_sorted_boxes(conditions, columns))

    def of(self, columns: Columns, weights: Weights) -> Weights:
        """The sum of each conjunction, over categories as codes and numbers without NaN."""
        at_once = min(SUMMED_AT_ONCE, CELLS_AT_ONCE // max(1, len(self._names)))

        def sums(start: int) -> Weights:
            some = slice(start, start + at_once)
            matrix = np.empty((len(self._names), len(weights[some])))
            for position, name in enumerate(self._names):
                matrix[position] = columns[name][some]
            rows = ConditionRows(matrix, weights[some])
            found = np.zeros(self._queries, weights.dtype)
            for boxes in self._boxes:
                found[boxes.query] = boxes.sums(rows)
            return found

        totals = np.zeros(self._queries, weights.dtype)
        starts = range(0, len(weights), at_once)
        with ThreadPoolExecutor(cpu_count() if len(starts) > 1 else 1) as pool:
            for found in pool.map(sums, starts):
                totals += found
        return totals


def _sorted_boxes(
    conditions: ConditionArrays, columns: Sequence[Attribute]
) -> Iterator[SortedBoxes]:
    categories_first = np.argsort(
        [not isinstance(c, LabelledColumn) for c in columns], kind="stable"
    )
    conditions = conditions.sorted_by(np.argsort(categories_first))
    for sorted_by, queries in _by_first_columns(conditions, columns).items():
        mine = conditions.of(np.array(queries))
        about, dimension = np.unique(mine.column, return_inverse=True)
        start = mine.start()
        yield SortedBoxes(
            sorted_by, about, np.array(queries), start, dimension, mine.low, mine.high
        )


def _by_first_columns(
    conditions: ConditionArrays, columns: Sequence[Attribute]
) -> dict[tuple[int, ...], list[int]]:
    """Group queries by the columns to sort the rows by; no columns if sorting saves no time."""
    column = conditions.column.tolist()
    members: dict[tuple[int, ...], list[int]] = {}
    about: dict[tuple[int, ...], set[int]] = {}
    for query, (start, end) in enumerate(pairwise(conditions.start().tolist())):
        is_category = end > start and isinstance(columns[column[start]], LabelledColumn)
        first = tuple(column[start : min(end, start + 1 + is_category)])
        members.setdefault(first, []).append(query)
        about.setdefault(first, set()).update(column[start:end])
    found: dict[tuple[int, ...], list[int]] = {}
    for first, queries in members.items():
        is_worth_it = len(queries) >= WORTH_SORTING * len(about[first])
        found.setdefault(first if is_worth_it else (), []).extend(queries)
    return found
