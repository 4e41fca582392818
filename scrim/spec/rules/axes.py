"""Axes: columns divided into parts, such that rules treat all values of a part alike.

The parts of a column of values are sets of its codes. Those of a column of numbers are closed intervals.
Missing is a part of its own, the last one. Everything that rules need to know about a type of column is
asked here.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import cached_property

from scrim.spec.columns import CategoricalColumn, IntegerColumn, RealColumn
from scrim.spec.rules.rule import Bound, Condition, Value, Within

MANY = 2**40
"""More values than a chain of comparisons can need."""

Column = CategoricalColumn | IntegerColumn | RealColumn
Numbers = IntegerColumn | RealColumn
Interval = tuple[float, float]


@dataclass(frozen=True)
class Meeting:
    """The values of a column that meet a condition."""

    codes: tuple[int, ...] = ()
    """The codes in a column of values, in the order in which they are listed."""
    intervals: tuple[Interval, ...] = ()
    """Closed intervals, in a column of numbers."""
    missing: bool = False


@dataclass(frozen=True)
class Axis:
    """A column and its parts."""

    column: Column
    codes: tuple[tuple[int, ...], ...] = ()
    """The codes of each part, in a column of values."""
    intervals: tuple[Interval, ...] = ()
    """The interval of each part, in a column of numbers."""

    @property
    def name(self) -> str:
        """The column's name."""
        return self.column.name

    @cached_property
    def known(self) -> int:
        """The number of parts without missing."""
        return len(self.codes) + len(self.intervals)

    @cached_property
    def size(self) -> int:
        """The number of parts."""
        return self.known + self.column.nullable

    @cached_property
    def missing(self) -> int | None:
        """The part of missing values."""
        return self.known if self.column.nullable else None

    def parts(self, meeting: Meeting) -> frozenset[int]:
        """The parts whose values meet a condition; the axis was divided for it."""
        codes = set(meeting.codes)
        found = {part for part, mine in enumerate(self.codes) if mine[0] in codes}
        found |= {
            part
            for part, (low, high) in enumerate(self.intervals)
            if any(a <= low and high <= b for a, b in meeting.intervals)
        }
        if meeting.missing and self.missing is not None:
            found.add(self.missing)
        return frozenset(found)

    @cached_property
    def empty(self) -> frozenset[int]:
        """The parts without any number that has the declared decimals."""
        return frozenset(
            part for part, interval in enumerate(self.intervals) if room(self.column, interval) < 0
        )


def axis_of(column: Column, meetings: Iterable[Meeting], starts: Collection[float] = ()) -> Axis:
    """Divide a column for conditions; `starts` are further numbers at which a part starts."""
    if isinstance(column, CategoricalColumn):
        alike: dict[int, list[int]] = {}
        marks = [0] * len(column.labels)
        for number, meeting in enumerate(meetings):
            for code in meeting.codes:
                marks[code] |= 1 << number
        for code, mark in enumerate(marks):
            alike.setdefault(mark, []).append(code)
        return Axis(column, codes=tuple(tuple(codes) for codes in alike.values()))
    cuts = {*starts, *starts_of(column, meetings)}
    inside = sorted({column.lower, *(cut for cut in cuts if column.lower < cut <= column.upper)})
    ends = [before(column, start) for start in inside[1:]]
    return Axis(
        column, intervals=tuple(zip(map(float, inside), [*ends, float(column.upper)], strict=True))
    )


def starts_of(column: Numbers, meetings: Iterable[Meeting]) -> set[float]:
    """The numbers at which the truth of a condition changes, and the two ends of the column."""
    found = {float(column.lower), after(column, column.upper)}
    for meeting in meetings:
        for low, high in meeting.intervals:
            found |= {low, after(column, high)}
    return found


def after(column: Numbers, number: float) -> float:
    """The next number that a column may hold."""
    return number + 1.0 if isinstance(column, IntegerColumn) else math.nextafter(number, math.inf)


def before(column: Numbers, number: float) -> float:
    """The previous number that a column may hold."""
    return number - 1.0 if isinstance(column, IntegerColumn) else math.nextafter(number, -math.inf)


def step(column: Numbers, number: float) -> float:
    """The next number that a release of the column may hold."""
    if isinstance(column, RealColumn) and column.decimals is not None:
        return number + float(10.0**-column.decimals)
    return after(column, number)


def room(column: Column, interval: Interval) -> int:
    """How many numbers of a release are in an interval, besides the first; at most MANY."""
    low, high = interval
    if isinstance(column, IntegerColumn):
        return int(high) - int(low)
    if not isinstance(column, RealColumn) or column.decimals is None:
        return MANY if low < high else 0
    first, last = (Decimal(repr(edge)).scaleb(column.decimals) for edge in interval)
    span = last.to_integral_value(ROUND_FLOOR) - first.to_integral_value(ROUND_CEILING)
    return min(MANY, int(span))


def are_comparable(one: Column, other: Column) -> bool:
    """Whether both columns hold numbers of the same kind."""
    if isinstance(one, CategoricalColumn) or isinstance(other, CategoricalColumn):
        return False
    if isinstance(one, RealColumn) and isinstance(other, RealColumn):
        return one.decimals == other.decimals
    return isinstance(one, IntegerColumn) and isinstance(other, IntegerColumn)


def meeting_of(condition: Condition, column: Column) -> Meeting:
    """The values of a column that meet a condition, or why there are none."""
    if isinstance(condition, Within):
        return _within(condition, column)
    known = [value for value in condition if value is not None]
    missing = len(known) < len(condition)
    if missing:
        _refuse_never_missing(column)
    if isinstance(column, CategoricalColumn):
        position = {label: code for code, label in enumerate(column.labels)}
        for item, value in enumerate(condition, start=1):
            if value is not None and (not isinstance(value, str) or value not in position):
                raise ValueError(
                    f"item {item} of the condition on {column.name!r} is not one of its values; list "
                    "declared values, or null for missing"
                )
        codes = dict.fromkeys(position[str(value)] for value in known)
        return Meeting(codes=tuple(codes), missing=missing)
    numbers = [_number(value, column) for value in known]
    return Meeting(intervals=_inside([(n, n) for n in numbers], column), missing=missing)


def _within(condition: Within, column: Column) -> Meeting:
    low, high = condition.min, condition.max
    if condition.missing:
        _refuse_never_missing(column)
    if isinstance(column, CategoricalColumn):
        if low is not None or high is not None:
            raise ValueError(
                f"{column.name!r} has values, not numbers; list the values instead of min and max"
            )
        codes = () if condition.missing else tuple(range(len(column.labels)))
        return Meeting(codes=codes, missing=bool(condition.missing))
    if low is None and high is None and condition.missing:
        return Meeting(missing=True)
    first = -math.inf if low is None else _number(low, column)
    last = math.inf if high is None else _number(high, column)
    if first > last:
        raise ValueError(f"no number meets the condition on {column.name!r}: min is above max")
    return Meeting(intervals=_inside([(first, last)], column), missing=bool(condition.missing))


def _inside(intervals: Sequence[Interval], column: Numbers) -> tuple[Interval, ...]:
    for low, high in intervals:
        if high < column.lower or low > column.upper:
            raise ValueError(
                f"the condition on {column.name!r} is outside its bounds; use numbers from its lower to "
                "its upper"
            )
    ordered = sorted((max(a, column.lower), min(b, column.upper)) for a, b in intervals)
    joined: list[Interval] = []
    for low, high in ordered:
        if joined and low <= after(column, joined[-1][1]):
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((float(low), float(high)))
    return tuple(joined)


def _number(value: Value | Bound, column: Numbers) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"the condition on {column.name!r} must have numbers")
    if isinstance(column, IntegerColumn) and value != int(value):
        raise ValueError(f"the condition on {column.name!r} must have whole numbers")
    return float(value)


def _refuse_never_missing(column: Column) -> None:
    if not column.nullable:
        raise ValueError(
            f"{column.name!r} is never missing, because it is not nullable; leave missing out of its "
            "condition"
        )
