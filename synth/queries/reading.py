"""Readings of a column as discrete codes: its categories, its bins, or a level of a binary tree."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from scrim.spec.columns import IntegerColumn, LabelledColumn, RealColumn
from scrim.spec.schema import Attribute
from scrim.spec.workload.binary_tree import at_level, level_name
from synth.missing import kinds_in, numbers_of_kinds


@dataclass(frozen=True)
class Reading:
    """The codes of a column. Numbers are split at edges into cells [a, b); the last cell is closed."""

    name: str
    column: str
    size: int
    """Number of codes; those after the cells are apart from the numbers, such as missing ones."""
    edges: tuple[float, ...] | None
    """Edges of the cells; None for categories, whose codes are used unchanged."""

    @classmethod
    def of(cls, column: Attribute) -> Self:
        """Its categories, or its declared bins."""
        edges = None if isinstance(column, LabelledColumn) else column.edges
        return cls(column.name, column.name, column.size, edges)

    @classmethod
    def at_level(cls, column: IntegerColumn | RealColumn, level: int) -> Self:
        """2^level cells of equal width between the declared bounds. Each level halves the previous one."""
        halved = at_level(column, level)
        return cls(level_name(column.name, level), column.name, halved.size, halved.edges)

    def codes(self, numbers: NDArray[Any]) -> NDArray[np.int64]:
        """The code of each number as a table reads it."""
        if self.edges is None:
            return numbers.astype(np.int64)
        codes = np.searchsorted(self._inner, numbers, side="right")
        cells = len(self.edges) - 1
        kinds = kinds_in(numbers, self.size - cells)
        return np.where(kinds > 0, cells - 1 + kinds, codes)

    def codes_of(self, column: Attribute) -> NDArray[np.int64]:
        """The code of each category or bin of the column; its bins must be parts of the cells."""
        if isinstance(column, LabelledColumn):
            return np.arange(column.size)
        return self.codes(np.concatenate([column.edges[:-1], numbers_of_kinds(len(column.apart))]))

    @cached_property
    def _inner(self) -> NDArray[np.float64]:
        assert self.edges is not None
        return np.array(self.edges[1:-1])
