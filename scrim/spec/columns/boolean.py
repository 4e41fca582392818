"""Columns of true and false, in any spelling."""

from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field

from scrim.spec.columns.attribute import LabelledColumn
from scrim.spec.columns.categorical import Value, refuse_repeated

Spellings = Annotated[list[Value], Field(min_length=1, max_length=100)]


class BooleanColumn(LabelledColumn):
    """A column of true and false. Each is released in its first spelling."""

    type: Literal["boolean"]
    """Always `boolean`."""
    true: Spellings = ["true"]
    """The spellings of true, such as `["yes", "Y", "1"]`. Cells of type boolean need no spelling."""
    false: Spellings = ["false"]
    """The spellings of false."""
    nullable: bool = True
    """Whether a missing or undeclared value is kept as missing; if not, it becomes false."""

    def refuse_faults(self) -> None:
        """Require distinct spellings."""
        refuse_repeated([*self.true, *self.false], "the spellings of true and false")
        self.refuse_missing()

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """True, then false."""
        return self.true[0], self.false[0]

    @property
    def other_code(self) -> int:
        """Undeclared values are missing, or false if the column is not nullable."""
        return 2 if self.nullable else 1

    def is_value(self, text: str) -> bool:
        """Whether a cell with this text is true or false."""
        return text in self.true or text in self.false
