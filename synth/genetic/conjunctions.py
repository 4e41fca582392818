"""Conjunctions of conditions on single columns.

Whether the other conditions hold is computed from the row's places. Storing it for every row and
conjunction would take memory proportional to both.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from scrim.spec.workload.conditions import Condition, Conjunction, HasCode, InInterval
from synth.genetic.candidates import Candidates
from synth.genetic.columns import Columns
from synth.genetic.compiled import compiled
from synth.genetic.query_counts import JOINS, LEAVES, QueryCounts, move
from synth.genetic.ragged import Flags, Integers, fields_of, joined, starts


class ConjunctionArrays(NamedTuple):
    """Conjunctions by number and by column."""

    first_query: int
    condition_start: Integers
    column: Integers
    low: Integers
    high: Integers
    """The conditions of each conjunction: low <= place < high, in a column."""
    use_start: Integers
    used_by: Integers
    used_low: Integers
    used_high: Integers
    """The conjunctions with a condition on each column, and that condition."""


def new_conjunctions(
    conjunctions: Sequence[Conjunction],
    names: Sequence[str],
    columns: Columns,
    *,
    first_query: int,
) -> ConjunctionArrays:
    """Build conjunctions over the named columns."""
    position = {name: i for i, name in enumerate(names)}
    conditions = [_ranges_of(conjunction, position, columns) for conjunction in conjunctions]
    uses: list[list[tuple[int, ...]]] = [[] for _ in names]
    for conjunction, ranges in enumerate(conditions):
        for column, low, high in ranges:
            uses[column].append((conjunction, low, high))
    column_of, low_of, high_of = fields_of(joined(conditions), 3)
    used_by, used_low, used_high = fields_of(joined(uses), 3)
    return ConjunctionArrays(
        first_query=first_query,
        condition_start=starts(conditions),
        column=column_of,
        low=low_of,
        high=high_of,
        use_start=starts(uses),
        used_by=used_by,
        used_low=used_low,
        used_high=used_high,
    )


def _ranges_of(
    conjunction: Conjunction, position: dict[str, int], columns: Columns
) -> list[tuple[int, ...]]:
    """Column and range of places of every condition, at most one for each column."""
    ranges: dict[int, tuple[int, int]] = {}
    for condition in conjunction:
        column = position[condition.column]
        low, high = _range_of(condition, columns, column)
        # Two conditions on one column hold where their ranges overlap.
        known_low, known_high = ranges.get(column, (low, high))
        ranges[column] = max(low, known_low), min(high, known_high)
    return [(column, low, high) for column, (low, high) in ranges.items()]


def _range_of(condition: Condition, columns: Columns, column: int) -> tuple[int, int]:
    """The first place at which a condition holds, and the first place after those."""
    if isinstance(condition, HasCode):
        return condition.code, condition.code + 1
    cuts = columns.cuts_of(column)
    missing = len(cuts) + 1
    if not isinstance(condition, InInterval):
        return missing + condition.kind, missing + condition.kind + 1
    low, high = np.searchsorted(cuts, [condition.low, condition.high], side="right")
    # An interval that ends at the upper bound is closed there.
    return int(low), missing if condition.high == columns.upper[column] else int(high)


def count_in_conjunctions(conjunctions: ConjunctionArrays, places: Integers) -> Integers:
    """The number of rows that satisfy each conjunction."""
    counts = [
        _hold(conjunctions, places, first, last).sum()
        for first, last in pairwise(conjunctions.condition_start)
    ]
    return np.array(counts, np.int64)


def _hold(conjunctions: ConjunctionArrays, places: Integers, first: int, last: int) -> Flags:
    """A mask of the rows that meet the conditions from `first` to `last`."""
    numbers = places[:, conjunctions.column[first:last]]
    low, high = conjunctions.low[first:last], conjunctions.high[first:last]
    hold: Flags = np.all((low <= numbers) & (numbers < high), axis=1)
    return hold


@compiled
def change_conjunctions(
    conjunctions: ConjunctionArrays,
    query_counts: QueryCounts,
    places: Integers,
    candidates: Candidates,
    start: int,
    end: int,
    is_kept: bool,
) -> None:
    """Update conjunctions whose condition on the changed column changes while the others hold."""
    for index in range(start, end):
        column, new = candidates.column[index], candidates.place[index]
        row = places[candidates.row[index]]
        change = 0.0
        for use in range(conjunctions.use_start[column], conjunctions.use_start[column + 1]):
            low, high = conjunctions.used_low[use], conjunctions.used_high[use]
            held, holds = low <= row[column] < high, low <= new < high
            conjunction = conjunctions.used_by[use]
            if held != holds and _hold_elsewhere(conjunctions, row, conjunction, column):
                query = conjunctions.first_query + conjunction
                direction = JOINS if holds else LEAVES
                change += query_counts.gains[query, direction]
                if is_kept:
                    move(query_counts, query, direction)
        candidates.score[index] += change


@compiled
def _hold_elsewhere(
    conjunctions: ConjunctionArrays, places: Integers, conjunction: int, column: int
) -> bool:
    """Whether a row meets the conditions on all other columns."""
    start = conjunctions.condition_start
    for condition in range(start[conjunction], start[conjunction + 1]):
        other = conjunctions.column[condition]
        low, high = conjunctions.low[condition], conjunctions.high[condition]
        if other != column and not low <= places[other] < high:
            return False
    return True
