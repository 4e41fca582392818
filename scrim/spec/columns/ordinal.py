"""Columns of ordered categories."""

from functools import cached_property
from typing import Any, Literal

from scrim.spec.columns.attribute import NumberColumn
from scrim.spec.columns.bins import Bins
from scrim.spec.columns.categorical import Value, Values, refuse_repeated
from scrim.spec.columns.numeric import IntegerColumn


class OrdinalColumn(NumberColumn):
    """A column of text values with an order. Ranges, trees, prefixes and halfspaces work on it.

    The values stand for the numbers 0, 1, 2 and so on.
    """

    type: Literal["ordinal"]
    """Always `ordinal`."""
    values: Values
    """All values of the column in order, the lowest first."""
    other: Value = "other"
    """The category for all undeclared values. One of `values`, or a category that has no place in the
    order."""
    nullable: bool = True
    """Whether a missing value is kept as missing; if not, it becomes `other`."""

    def refuse_faults(self) -> None:
        """Require distinct values, and missing values that differ from them."""
        refuse_repeated(self.values)
        self.refuse_missing()
        if ({*self.kinds} & {*self.texts} and len(self.kinds) > 1) or self.other in self.kinds:
            raise ValueError(
                'the kinds in "missing" must have other names than the values and "other"'
            )

    @cached_property
    def line(self) -> IntegerColumn:
        """The positions of the values, each in a bin of its own."""
        return IntegerColumn.model_construct(
            name=self.name,
            type="integer",
            lower=0,
            upper=len(self.values) - 1,
            bins=Bins(width=1),
            nullable=bool(self.apart),
            # Only the number of these kinds matters.
            missing={f"={i}" if i else "": str(i) for i in range(len(self.apart))} or None,
        )

    @property
    def bins(self) -> Bins:
        """One bin for each value."""
        return Bins(width=1)

    @property
    def edges(self) -> tuple[float, ...]:
        """The position of each value, and again that of the last one."""
        return self.line.edges

    @property
    def size(self) -> int:
        """Number of codes."""
        return self.line.size

    @cached_property
    def apart(self) -> tuple[str, ...]:
        """The kinds of missing values, and `other` if it is not one of the values."""
        return self.kinds if self.other in self.values else (*self.kinds, self.other)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The text of every released value except missing ones."""
        return tuple(self.values) if self.other in self.values else (*self.values, self.other)

    @property
    def code_labels(self) -> list[str]:
        """A readable name of each code."""
        return [*self.values, *self.apart]

    def write(self, number: float) -> str:
        """The value at a position."""
        return self.values[int(number)]

    def read(self, value: Any) -> float:
        """The position of a value."""
        if not isinstance(value, str) or value not in self._positions:
            raise ValueError(f"column {self.name!r} has no such value in its order")
        return self._positions[value]

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {value: position for position, value in enumerate(self.values)}

    def is_value(self, text: str) -> bool:
        """Whether a cell with this text is one of the values."""
        return text in self.texts
