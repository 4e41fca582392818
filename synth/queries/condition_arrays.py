"""Conditions of many conjunctions as arrays: each requires that a number is in [low, high)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from scrim.spec.columns import LabelledColumn
from scrim.spec.errors import SpecError
from scrim.spec.schema import Attribute
from scrim.spec.workload.bins import BinStarts, cut_bins
from scrim.spec.workload.conditions import Condition, Conjunction, HasCode, InInterval
from synth.missing import number_of_kind

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

MISSING_NUMBER = -math.inf
"""Represents a missing number, below all others."""
LOWEST = -float(np.finfo(np.float64).max)
"""Only MISSING_NUMBER is below it."""

Bounds = Callable[[Condition], tuple[float, float]]


@dataclass(frozen=True)
class ConditionArrays:
    """Conditions ordered by query; within a query, points come before intervals."""

    queries: int
    query: Integers
    column: Integers
    """Position among the attributes."""
    is_point: Flags
    """Whether the condition is on one category or on missing numbers."""
    low: Floats
    high: Floats

    def start(self) -> Integers:
        """The first condition of each query, and the end of the last query."""
        return np.searchsorted(self.query, np.arange(self.queries + 1))

    def on(self, columns: Flags) -> "ConditionArrays":
        """Only the conditions on some columns, which are renumbered."""
        picked = self._picked(np.flatnonzero(columns[self.column]), self.query, self.queries)
        return replace(picked, column=(np.cumsum(columns) - 1)[picked.column])

    def sorted_by(self, rank: Integers) -> "ConditionArrays":
        """The conditions of each query, sorted by the rank of their columns."""
        order = np.lexsort((rank[self.column], self.query))
        return self._picked(order, self.query, self.queries)

    def of(self, queries: Integers) -> "ConditionArrays":
        """The conditions of some queries, which are renumbered."""
        start = self.start()
        length = np.diff(start)[queries]
        first = np.cumsum(length) - length
        positions = np.repeat(start[queries] - first, length) + np.arange(length.sum())
        renumbered = np.empty_like(self.query)
        renumbered[positions] = np.repeat(np.arange(len(queries)), length)
        return self._picked(positions, renumbered, len(queries))

    def _picked(self, positions: Integers, query: Integers, queries: int) -> "ConditionArrays":
        return ConditionArrays(
            queries,
            query[positions],
            self.column[positions],
            self.is_point[positions],
            self.low[positions],
            self.high[positions],
        )


def in_numbers(
    conjunctions: Sequence[Conjunction], attributes: Sequence[Attribute]
) -> ConditionArrays:
    """Conditions on numbers as a table reads them, with MISSING_NUMBER for missing ones."""
    upper = {c.name: c.line.upper for c in attributes if not isinstance(c, LabelledColumn)}

    def bounds(condition: Condition) -> tuple[float, float]:
        if isinstance(condition, HasCode):
            return condition.code, condition.code + 1
        if isinstance(condition, InInterval):
            is_closed = condition.high == upper[condition.column]
            return condition.low, math.inf if is_closed else condition.high
        if condition.kind:
            low = number_of_kind(condition.kind)
            return low, math.nextafter(low, math.inf)
        return MISSING_NUMBER, LOWEST

    return _listed(conjunctions, attributes, bounds)


def in_bins(
    conjunctions: Sequence[Conjunction], attributes: Sequence[Attribute]
) -> ConditionArrays:
    """Conditions on the codes of categories and bins."""
    columns = {column.name: column for column in attributes}
    starts: dict[str, BinStarts] = {}

    def bounds(condition: Condition) -> tuple[float, float]:
        if isinstance(condition, HasCode):
            return condition.code, condition.code + 1
        column = columns[condition.column]
        assert not isinstance(column, LabelledColumn)
        if column.bins is None:
            raise SpecError(cut_bins(column))
        if not isinstance(condition, InInterval):
            code = column.size - len(column.apart) + condition.kind
            return code, code + 1
        if column.name not in starts:
            starts[column.name] = BinStarts(column.line)
        span = starts[column.name].span(condition.low, condition.high)
        if span is None:
            raise SpecError(cut_bins(column))
        return span

    return _listed(conjunctions, attributes, bounds)


def _listed(
    conjunctions: Sequence[Conjunction], attributes: Sequence[Attribute], bounds: Bounds
) -> ConditionArrays:
    position = {column.name: i for i, column in enumerate(attributes)}
    listed = [
        (query, not is_interval, position[condition.column], *bounds(condition))
        for query, conjunction in enumerate(conjunctions)
        for is_interval, condition in _points_first(conjunction)
    ]
    query, is_point, column, low, high = zip(*listed, strict=True)
    return ConditionArrays(
        len(conjunctions),
        np.array(query, np.int64),
        np.array(column, np.int64),
        np.array(is_point, np.bool_),
        np.array(low, np.float64),
        np.array(high, np.float64),
    )


def _points_first(conjunction: Conjunction) -> list[tuple[bool, Condition]]:
    """Each condition, and whether it is an interval."""
    kinds = [(isinstance(condition, InInterval), condition) for condition in conjunction]
    return sorted(kinds, key=lambda kind: kind[0])
