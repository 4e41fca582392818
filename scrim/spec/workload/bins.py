"""The bins that make up an interval of a column, for models with binned numbers."""

from bisect import bisect_left
from math import ceil

from scrim.spec.columns import IntegerColumn, NumberColumn, RealColumn


class BinStarts:
    """The start of each bin of a numeric column."""

    def __init__(self, column: IntegerColumn | RealColumn) -> None:
        self._starts = column.edges[:-1]
        self._upper = column.upper
        self._is_whole = isinstance(column, IntegerColumn)

    def span(self, low: float, high: float) -> tuple[int, int] | None:
        """The first bin in [low, high), and the one after the last; None if an end is inside a bin.

        An interval that ends at the column's upper bound includes it.
        """
        is_closed = high == self._upper
        if self._is_whole:
            # An integer is below an end exactly if it is below the end rounded up.
            low, high = ceil(low), ceil(high)
        if high <= low and not is_closed:
            return 0, 0
        first = self._starting_at(low)
        end = len(self._starts) if is_closed else self._starting_at(high)
        return None if first is None or end is None else (first, end)

    def _starting_at(self, number: float) -> int | None:
        found = bisect_left(self._starts, number)
        return found if found < len(self._starts) and self._starts[found] == number else None


def has_bin_for_each_number(column: IntegerColumn | RealColumn) -> bool:
    """Whether every number has its own bin, so that any interval consists of bins."""
    if not has_known_edges(column) or not isinstance(column, IntegerColumn):
        return False
    return column.size - len(column.kinds) == column.upper - column.lower + 1


def has_known_edges(column: IntegerColumn | RealColumn) -> bool:
    """Whether the edges of its bins are known before any data are read."""
    return column.bins is not None and not column.awaits_edges


def cut_bins(column: NumberColumn) -> str:
    """The message about a column whose intervals do not consist of its bins."""
    return (
        f"an interval of column {column.name!r} ends inside one of its bins; declare bins with an "
        "edge wherever an interval ends, or use a mechanism that needs no bins"
    )
