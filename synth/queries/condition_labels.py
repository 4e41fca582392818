"""Readable names of conditions, such as `sex=F`, `age in [20, 30)` or `income is missing`."""

from collections.abc import Callable
from typing import cast

from scrim.spec.columns import CategoricalColumn
from scrim.spec.schema import Attribute
from scrim.spec.workload.conditions import Condition, HasCode, InInterval


def category_labels(column: CategoricalColumn) -> list[str]:
    """The name of each code."""
    labels = [f"{column.name}={label}" for label in column.labels]
    return [*labels, f"{column.name} is missing"] if column.nullable else labels


def condition_labels(column: Attribute) -> Callable[[Condition], str]:
    """Return a function that names conditions on a column."""
    if isinstance(column, CategoricalColumn):
        labels = category_labels(column)
        return lambda condition: labels[cast(HasCode, condition).code]

    def label(condition: Condition) -> str:
        if not isinstance(condition, InInterval):
            return f"{column.name} is missing"
        low, high = f"{condition.low:.15g}", f"{condition.high:.15g}"
        if condition.high == column.upper:
            return f"{column.name} in [{low}, {high}]"
        if condition.low == column.lower:
            return f"{column.name} < {high}"
        return f"{column.name} in [{low}, {high})"

    return label
