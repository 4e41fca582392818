"""Readable names of conditions, such as `sex=F`, `age in [20, 30)` or `income is missing`."""

from collections.abc import Callable
from math import ceil
from typing import cast

from scrim.spec.columns import IntegerColumn, LabelledColumn, OrdinalColumn
from scrim.spec.schema import Attribute, Numeric
from scrim.spec.workload.conditions import Condition, HasCode, InInterval, IsMissing


def category_labels(column: LabelledColumn) -> list[str]:
    """The name of each code."""
    labels = [f"{column.name}={label}" for label in column.labels]
    return [*labels, *(f"{column.name} is {kind}" for kind in column.kinds)]


def condition_labels(column: Attribute) -> Callable[[Condition], str]:
    """Return a function that names conditions on a column."""
    if isinstance(column, LabelledColumn):
        labels = category_labels(column)
        return lambda condition: labels[cast(HasCode, condition).code]

    def label(condition: Condition) -> str:
        if not isinstance(condition, InInterval):
            return f"{column.name} is {column.apart[cast(IsMissing, condition).kind]}"
        return _interval_label(column, condition)

    return label


def _interval_label(column: Numeric, interval: InInterval) -> str:
    name, line = column.name, column.line
    ends = interval.low, interval.high
    if isinstance(line, IntegerColumn) and line is not column:
        # The values at or above an end are those from the next whole number on.
        ends = ceil(ends[0]), ceil(ends[1])
    if isinstance(column, OrdinalColumn):
        is_closed = interval.high == line.upper
        first, last = (column.write(end) for end in (ends[0], ends[1] - (not is_closed)))
        return f"{name}={first}" if first == last else f"{name} from {first} to {last}"
    low, high = (column.write(end) for end in ends)
    if interval.high == line.upper:
        return f"{name} in [{low}, {high}]"
    return f"{name} < {high}" if interval.low == line.lower else f"{name} in [{low}, {high})"
