"""The codec of columns of real numbers."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from scrim.spec.columns import RealColumn
from synth.missing import kinds_in, number_of_kind, numbers_of_kinds
from synth.table.cells import numbers_and_kinds
from synth.table.chunk import Array, smallest_unsigned
from synth.table.grid import round_within
from synth.table.pieces import Pieces, pieces_of
from synth.table.steps import with_spellings

Codes = npt.NDArray[np.integer[Any]]


class RealCodec:
    """Real numbers unchanged; missing as in synth/missing.py, or as `lower`."""

    arrow_type = pa.float64()
    dtype = np.dtype(np.float64)

    def __init__(self, column: RealColumn) -> None:
        self.column = column
        self.decimals = column.decimals

    def encode(self, cells: Any) -> Array:
        """The numbers, clamped; a negative zero becomes zero."""
        return self.from_numbers(numbers_and_kinds(cells, self.column))

    def numbers(self, stored: Array) -> Array:
        """The numbers themselves."""
        return stored

    def from_numbers(self, numbers: Array) -> Array:
        """Convert numbers to stored values: clamped; missing is kept if allowed."""
        kinds = self._kinds(numbers)
        kept = np.where(kinds > 0, self.column.lower, numbers)
        kept = np.clip(kept, self.column.lower, self.column.upper) + 0.0
        if self.column.kinds:
            # All NaNs get the same bits: those that Arrow returns for a cell may depend on other cells.
            missing = kinds > 0
            kept[missing] = numbers_of_kinds(len(self.column.kinds))[kinds[missing] - 1]
        return kept

    def stored_kind(self, kind: str) -> float:
        """The stored value of a kind of missing values."""
        kinds = self.column.kinds
        if not kinds:
            return self.column.lower
        return number_of_kind(kinds.index(kind) if kind in kinds else 0)

    def kinds(self, stored: Array) -> Array:
        """For each cell 0, or 1 plus the position of its kind of missing values."""
        return self._kinds(stored)

    def _kinds(self, numbers: Array) -> npt.NDArray[np.int64]:
        return kinds_in(numbers, len(self.column.kinds))

    def decode(self, stored: Array) -> Any:
        """Numbers as an Arrow float64 array, rounded to the declared digits, missing as null."""
        return pa.array(self.rounded(stored), pa.float64(), mask=self._kinds(stored) > 0)

    def writer(self, quoted: Callable[[str], str]) -> Callable[[Array], Any]:
        """Write stored values as cells of a CSV file, with the declared digits."""
        return lambda stored: self._texts(stored, quoted)

    def _texts(self, stored: Array, quoted: Callable[[str], str]) -> Any:
        values = self.decode(stored)
        if self.decimals is None:
            texts = pc.cast(values, pa.large_string())
        else:
            texts = pa.array(
                [None if x is None else f"{x:.{self.decimals}f}" for x in values.to_pylist()],
                pa.large_string(),
            )
        return with_spellings(texts, self._kinds(stored), self.column, quoted)

    def discretise(self, stored: Array) -> Array:
        """The bin of each value; kinds of missing values come after the bins."""
        bins = np.searchsorted(self._edges[1:-1], stored, side="right")
        kinds = self._kinds(stored)
        bins = np.where(kinds > 0, len(self._edges) - 2 + kinds, bins)
        return bins.astype(smallest_unsigned(self.column.size - 1))

    def rounded(self, stored: Array) -> Array:
        """Round numbers to the declared decimals, as in a release."""
        if self.decimals is None:
            return stored
        lower, upper = self.column.lower, self.column.upper
        return self._rounded(stored, np.full(len(stored), lower), np.full(len(stored), upper))

    def _rounded(self, values: Array, low: Array, high: Array) -> Array:
        assert self.decimals is not None
        found = values.copy()
        present = self._kinds(values) == 0
        found[present] = round_within(values[present], low[present], high[present], self.decimals)
        return found

    def draw(self, codes: Codes, rng: np.random.Generator) -> Array:
        """Draw numbers from their bins, by the shape of these, and round them without leaving their bins."""
        starts, cells = pieces_of(self._pieces, self._edges[:-1], codes, rng)
        # Half-open bins end just below their upper edge; a kind of missing values is a bin of one number.
        ends = np.append(np.nextafter(starts[1:], -np.inf), self._edges[-1])
        kinds = numbers_of_kinds(len(self.column.kinds))
        low = np.append(starts, kinds)[cells]
        high = np.append(ends, kinds)[cells]
        values = np.minimum(low + (high - low) * rng.random(len(codes)), high) + 0.0
        return values if self.decimals is None else self._rounded(values, low, high)

    @cached_property
    def _pieces(self) -> Pieces | None:
        return Pieces.of(self.column)

    @cached_property
    def _edges(self) -> npt.NDArray[np.float64]:
        return np.array(self.column.edges)
