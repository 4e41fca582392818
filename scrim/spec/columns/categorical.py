"""Columns of declared values."""

from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field

from scrim.spec.base import Name
from scrim.spec.columns.declared import MAX_CODES, Declared


class CategoricalColumn(Declared):
    """A column with a declared list of text values."""

    name: Name
    """The column's name in the uploaded file."""
    type: Literal["categorical"]
    """Always `categorical`."""
    values: Annotated[
        list[Annotated[str, Field(max_length=1000)]],
        Field(min_length=1, max_length=MAX_CODES, fail_fast=True),
    ]
    """All values of the column, as text. Their order is kept."""
    other: Annotated[str, Field(max_length=1000)] = "other"
    """The category for all undeclared values. One of `values`, or a category added to them."""
    nullable: bool = True
    """Whether a missing value is kept as missing; if not, it becomes `other`."""

    def refuse_faults(self) -> None:
        """Require distinct values."""
        first: dict[str, int] = {}
        for position, value in enumerate(self.values):
            if first.setdefault(value, position) != position:
                raise ValueError(
                    f"values must be distinct, but items {first[value] + 1} and {position + 1} are the "
                    "same"
                )

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The text of every code except missing: the values, and `other` if it is not one of them."""
        return tuple(self.values) if self.other in self.values else (*self.values, self.other)

    @cached_property
    def codes(self) -> dict[str, int]:
        """The code of every label."""
        return {label: code for code, label in enumerate(self.labels)}

    @cached_property
    def size(self) -> int:
        """Number of codes: labels, then one for missing if `nullable`."""
        return len(self.labels) + self.nullable
