"""Axes: columns divided into parts, such that rules treat all values of a part alike.

The parts of a column of labels are sets of its codes. Those of a column of numbers are closed intervals of
absolute numbers: positions of ordered categories, periods of dates. What is not on the line of numbers,
such as missing values, is a part of its own, the last one. Everything that rules need to know about a type of
column is asked here.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import cached_property

from scrim.spec.columns import (
    AttributeColumn,
    BooleanColumn,
    CodeColumn,
    DateColumn,
    DatetimeColumn,
    IntegerColumn,
    LabelledColumn,
    NumberColumn,
    OrdinalColumn,
    RealColumn,
)
from scrim.spec.rules.rule import Bound, Condition, Value, Within

MANY = 2**40
"""More values than a chain of comparisons can need."""

Interval = tuple[float, float]


@dataclass(frozen=True)
class Meeting:
    """The values of a column that meet a condition."""

    codes: tuple[int, ...] = ()
    """The codes in a column of labels, in the order in which they are listed."""
    intervals: tuple[Interval, ...] = ()
    """Closed intervals, in a column of numbers."""
    missing: bool = False


@dataclass(frozen=True)
class Axis:
    """A column and its parts."""

    column: AttributeColumn
    codes: tuple[tuple[int, ...], ...] = ()
    """The codes of each part, in a column of labels."""
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
        return self.known + bool(apart(self.column))

    @cached_property
    def missing(self) -> int | None:
        """The part of missing values, of any kind."""
        return self.known if apart(self.column) else None

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


def axis_of(
    column: AttributeColumn, meetings: Iterable[Meeting], starts: Collection[float] = ()
) -> Axis:
    """Divide a column for conditions; `starts` are further numbers at which a part starts."""
    if isinstance(column, LabelledColumn):
        alike: dict[int, list[int]] = {}
        marks = [0] * len(column.labels)
        for number, meeting in enumerate(meetings):
            for code in meeting.codes:
                marks[code] |= 1 << number
        for code, mark in enumerate(marks):
            alike.setdefault(mark, []).append(code)
        return Axis(column, codes=tuple(tuple(codes) for codes in alike.values()))
    lower, upper = bounds(column)
    cuts = {*starts, *starts_of(column, meetings)}
    inside = sorted({lower, *(cut for cut in cuts if lower < cut <= upper)})
    ends = [before(column, start) for start in inside[1:]]
    return Axis(column, intervals=tuple(zip(inside, [*ends, upper], strict=True)))


def apart(column: AttributeColumn) -> tuple[str, ...]:
    """Names of the codes that are no labels and not on a line of numbers."""
    return column.apart if isinstance(column, NumberColumn) else column.kinds


def line_of(column: AttributeColumn) -> IntegerColumn | RealColumn:
    """The numbers of a column."""
    assert isinstance(column, NumberColumn)
    return column.line


def decimals_of(column: AttributeColumn) -> int | None:
    """The decimals of a release of a column of real numbers, if they are declared."""
    line = line_of(column)
    return line.decimals if isinstance(line, RealColumn) else None


def is_whole(column: AttributeColumn) -> bool:
    """Whether the numbers of a column are whole."""
    return isinstance(line_of(column), IntegerColumn)


def origin(column: AttributeColumn) -> float:
    """The absolute number of what the column counts as 0."""
    return float(column.first_period) if isinstance(column, DateColumn | DatetimeColumn) else 0.0


def bounds(column: AttributeColumn) -> Interval:
    """The smallest and the largest absolute number."""
    line, start = line_of(column), origin(column)
    return line.lower + start, line.upper + start


def starts_of(column: AttributeColumn, meetings: Iterable[Meeting]) -> set[float]:
    """The numbers at which the truth of a condition changes, and the two ends of the column."""
    lower, upper = bounds(column)
    found = {lower, after(column, upper)}
    for meeting in meetings:
        for low, high in meeting.intervals:
            found |= {low, after(column, high)}
    return found


def after(column: AttributeColumn, number: float) -> float:
    """The next number that a column may hold."""
    return number + 1.0 if is_whole(column) else math.nextafter(number, math.inf)


def before(column: AttributeColumn, number: float) -> float:
    """The previous number that a column may hold."""
    return number - 1.0 if is_whole(column) else math.nextafter(number, -math.inf)


def room(column: AttributeColumn, interval: Interval) -> int:
    """How many numbers of a release are in an interval, besides the first; at most MANY."""
    low, high = interval
    if is_whole(column):
        return int(high) - int(low)
    decimals = decimals_of(column)
    if decimals is None:
        return MANY if low < high else 0
    first, last = (Decimal(repr(edge)).scaleb(decimals) for edge in interval)
    span = last.to_integral_value(ROUND_FLOOR) - first.to_integral_value(ROUND_CEILING)
    return min(MANY, int(span))


def are_comparable(one: AttributeColumn, other: AttributeColumn) -> bool:
    """Whether both columns hold numbers of the same kind."""
    if type(one) is not type(other) or not isinstance(one, NumberColumn):
        return False
    if isinstance(one, OrdinalColumn) and isinstance(other, OrdinalColumn):
        return one.values == other.values
    if isinstance(one, DateColumn | DatetimeColumn):
        return one.resolution == getattr(other, "resolution", None)
    return decimals_of(one) == decimals_of(other)


def meeting_of(condition: Condition, column: AttributeColumn) -> Meeting:
    """The values of a column that meet a condition, or why there are none."""
    if isinstance(condition, Within):
        return _within(condition, column)
    known = [value for value in condition if value is not None]
    missing = len(known) < len(condition)
    if missing:
        _refuse_never_missing(column)
    if isinstance(column, LabelledColumn):
        return Meeting(codes=_codes(condition, column), missing=missing)
    numbers = [_number(value, column) for value in known]
    return Meeting(intervals=_inside([(n, n) for n in numbers], column), missing=missing)


def _codes(condition: Sequence[Value], column: LabelledColumn) -> tuple[int, ...]:
    """The codes of listed values. Of codes that are measured in a group, all must be listed, or the group."""
    position = {label: code for code, label in enumerate(column.labels)}
    if isinstance(column, BooleanColumn):
        position |= dict.fromkeys(column.true, 0) | dict.fromkeys(column.false, 1)
    cells = column.cell_of_text if isinstance(column, CodeColumn) else range(len(column.texts))
    cell = dict(zip(column.texts, cells, strict=True))
    found: dict[int, None] = {}
    for item, value in enumerate(condition, start=1):
        if value is None:
            continue
        is_truth = isinstance(value, bool) and isinstance(column, BooleanColumn)
        text = column.labels[not value] if is_truth else value
        if not isinstance(text, str) or (text not in position and text not in cell):
            raise ValueError(
                f"item {item} of the condition on {column.name!r} is not one of its values; list declared "
                "values, or null for missing"
            )
        if text not in position and not {t for t in cell if cell[t] == cell[text]} <= {*condition}:
            raise ValueError(
                f"item {item} of the condition on {column.name!r} is measured in a group of codes; list all "
                "codes of the group, or the group"
            )
        found[position[text] if text in position else cell[text]] = None
    return tuple(found)


def _within(condition: Within, column: AttributeColumn) -> Meeting:
    low, high = condition.min, condition.max
    if condition.missing:
        _refuse_never_missing(column)
    if isinstance(column, LabelledColumn):
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


def _inside(intervals: Sequence[Interval], column: AttributeColumn) -> tuple[Interval, ...]:
    lower, upper = bounds(column)
    for low, high in intervals:
        if high < lower or low > upper:
            raise ValueError(
                f"the condition on {column.name!r} is outside its bounds; use values from its lower to "
                "its upper"
            )
    ordered = sorted((max(a, lower), min(b, upper)) for a, b in intervals)
    joined: list[Interval] = []
    for low, high in ordered:
        if joined and low <= after(column, joined[-1][1]):
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return tuple(joined)


def _number(value: Value | Bound, column: AttributeColumn) -> float:
    """The absolute number of a value as it is declared."""
    assert isinstance(column, NumberColumn)
    if not isinstance(column, IntegerColumn | RealColumn):
        return column.read(value) + origin(column)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"the condition on {column.name!r} must have numbers")
    if isinstance(column, IntegerColumn) and value != int(value):
        raise ValueError(f"the condition on {column.name!r} must have whole numbers")
    return float(value)


def _refuse_never_missing(column: AttributeColumn) -> None:
    if not apart(column):
        raise ValueError(
            f"{column.name!r} is never missing, because it is not nullable; leave missing out of its "
            "condition"
        )
