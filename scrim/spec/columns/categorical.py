"""Columns of declared values."""

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field

from scrim.spec.columns.attribute import LabelledColumn
from scrim.spec.columns.declared import MAX_CODES

Value = Annotated[str, Field(max_length=1000)]
Values = Annotated[list[Value], Field(min_length=1, max_length=MAX_CODES, fail_fast=True)]


class CategoricalColumn(LabelledColumn):
    """A column with a declared list of text values."""

    type: Literal["categorical"]
    """Always `categorical`."""
    values: Values
    """All values of the column, as text. Their order is kept."""
    other: Value = "other"
    """The category for all undeclared values. One of `values`, or a category added to them."""
    nullable: bool = True
    """Whether a missing value is kept as missing; if not, it becomes `other`."""

    def refuse_faults(self) -> None:
        """Require distinct values."""
        refuse_repeated(self.values)
        self.refuse_missing()

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The text of every code except missing: the values, and `other` if it is not one of them."""
        return tuple(self.values) if self.other in self.values else (*self.values, self.other)

    @property
    def other_code(self) -> int:
        """The position of undeclared values."""
        return self.labels.index(self.other)


def refuse_repeated(values: Sequence[str], field: str = "values") -> None:
    """Require distinct values."""
    first: dict[str, int] = {}
    for position, value in enumerate(values):
        if first.setdefault(value, position) != position:
            raise ValueError(
                f"{field} must be distinct, but items {first[value] + 1} and {position + 1} are the same"
            )
