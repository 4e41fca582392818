"""What columns of whole and of real numbers have in common."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

from scrim.spec.columns.attribute import NumberColumn
from scrim.spec.columns.bins import Bins
from scrim.spec.columns.grid import Grid, NumberLine, grid_of, separated
from scrim.spec.columns.missing import as_number

MAX_SPECIAL = 1_000
"""Largest number of special values of a column."""


class NumericColumn(NumberColumn):
    """What whole and real numbers have in common."""

    bins: Bins | None = None
    """Bins, which mechanisms on discrete domains need; released values are drawn inside the bin. A column
    without them gets `{"adaptive": 32}` in a release that needs some."""
    nullable: bool = True
    """Whether a missing value is kept as missing; if not, it becomes `lower`."""

    @cached_property
    def edges(self) -> tuple[float, ...]:
        """Edges of the half-open bins, the last one closed at `upper`.

        Adaptive bins have equal widths until they are placed; only their number is final.
        """
        if self.awaits_edges:
            return self._equal_edges
        declared = self._declared_edges()
        return separated(declared, self.number_line) if self.number_line.special else declared

    @property
    def size(self) -> int:
        """Number of codes: bins, then one for each kind of missing values."""
        return self._bin_count + len(self.kinds)

    def is_value(self, text: str) -> bool:
        """Whether a cell with this text is a number between the bounds."""
        number = as_number(text)
        return number is not None and self._holds(number)

    @property
    def code_labels(self) -> list[str]:
        """A readable name of each code; where values may have bins of their own, such a bin is its value."""
        if self.bins is None or not (self.number_line.special or self.bins.shape):
            return super().code_labels
        return [*self._bin_labels(), *self.apart]

    def _bin_labels(self) -> Iterator[str]:
        edges, after = self.edges, self.number_line.after
        previous: float | None = None
        """The single number before a bin, if there is one."""
        for start, end in pairwise(edges):
            if end == start or (after(start) == end and end != edges[-1]):
                yield self.write(start)
                previous = start
                continue
            is_open = previous is not None and self.number_line.decimals is None
            low = f"({self.write(previous or 0.0)}" if is_open else f"[{self.write(start)}"
            previous = None
            yield f"{low}, {self.write(end)}{']' if end == edges[-1] else ')'}"

    def _holds(self, number: float) -> bool:
        raise NotImplementedError

    def write(self, number: float) -> str:
        """The number itself."""
        return f"{number:.15g}"

    def read(self, value: Any) -> float:
        """The number itself."""
        if isinstance(value, str):
            raise ValueError(f"column {self.name!r} holds numbers; give numbers")
        return float(value)

    @cached_property
    def number_line(self) -> NumberLine:
        """The numbers that the column may hold."""
        raise NotImplementedError

    @property
    def grid(self) -> Grid:
        """The public grid from which adaptive bins are placed."""
        return grid_of(self.number_line)

    @property
    def is_adaptive(self) -> bool:
        """Whether its bins are declared as adaptive."""
        return self.bins is not None and self.bins.adaptive is not None

    @property
    def awaits_edges(self) -> bool:
        """Whether its edges must be placed by noisy counts. If each cell of the grid can be a bin, they need
        not."""
        return self.is_adaptive and self._bin_count < self.grid.cells

    def with_edges(self, bins: Bins) -> Self:
        """The column with bins that were placed."""
        return self.model_copy(update={"bins": bins})

    @property
    def _declared_bins(self) -> Bins:
        if self.bins is None:
            raise ValueError(f"column {self.name!r} has no bins")
        return self.bins

    @property
    def _bin_count(self) -> int:
        # Counted without listing the edges, unless there are special values.
        adaptive = self._declared_bins.adaptive
        if adaptive is not None:
            special = len(self.number_line.special)
            # Special values may need one bin more between any two of them.
            return min(max(adaptive, special + 1) + special, self.grid.cells)
        if self.number_line.special:
            return len(self.edges) - 1
        return self._declared_count

    @property
    def _declared_count(self) -> int:
        raise NotImplementedError

    def _declared_edges(self) -> tuple[float, ...]:
        raise NotImplementedError

    @property
    def _equal_edges(self) -> tuple[float, ...]:
        """As many edges as adaptive bins will have, at equal distances on the grid."""
        starts, number = self.grid.starts[-1], self._bin_count
        return (*(starts[i * len(starts) // number] for i in range(number)), self.number_line.upper)


def refuse_special(special: Iterable[float], line: NumberLine) -> None:
    """Require distinct special values that the column can hold."""
    values = list(special)
    if len(set(values)) < len(values):
        raise ValueError("special lists the same value twice")
    for value in values:
        if not line.lower <= value <= line.upper:
            raise ValueError(f'the special value {value:g} must lie between "lower" and "upper"')
        if not line.holds(value):
            raise ValueError(f"the special value {value:g} has more decimals than the column")
