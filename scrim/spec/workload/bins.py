"""Which bins of a column an interval consists of, for models that know numbers only by their bins."""

from bisect import bisect_left
from math import ceil

from scrim.spec.schema import IntegerColumn, RealColumn


class BinStarts:
    """Where the bins of a numeric column start."""

    def __init__(self, column: IntegerColumn | RealColumn) -> None:
        self._starts = column.edges[:-1]
        self._upper = column.upper
        self._is_whole = isinstance(column, IntegerColumn)

    def span(self, low: float, high: float) -> tuple[int, int] | None:
        """The first bin in [low, high), and the one after the last; None where an end cuts a bin.

        An interval that ends at the column's upper bound holds it.
        """
        is_closed = high == self._upper
        if self._is_whole:
            # A whole number is below an end exactly if it is below the next whole number.
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
    """Whether every interval consists of bins, wherever it ends."""
    if column.bins is None or not isinstance(column, IntegerColumn):
        return False
    return column.size - column.nullable == column.upper - column.lower + 1


def cut_bins(column: IntegerColumn | RealColumn) -> str:
    """What to say of a column whose intervals do not consist of its bins."""
    return (
        f"an interval of column {column.name!r} does not consist of bins of it; declare bins with an "
        "edge wherever an interval ends, or use a mechanism that needs no bins"
    )
