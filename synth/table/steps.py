"""The codecs of columns whose values stand for whole numbers: integers, ordered categories and dates."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from scrim.spec.columns import (
    DateColumn,
    DatetimeColumn,
    IntegerColumn,
    NumberColumn,
    OrdinalColumn,
)
from scrim.spec.columns.periods import period_of
from synth.missing import kinds_in, numbers_of_kinds
from synth.table.cells import numbers_and_kinds, plain, texts_of
from synth.table.chunk import Array, smallest_unsigned
from synth.table.matching import Matching
from synth.table.moments import is_temporal, moments_of, periods_in
from synth.table.pieces import Pieces, pieces_of

Codes = npt.NDArray[np.integer[Any]]
StepColumn = TypeVar("StepColumn", bound=NumberColumn)


class StepCodec(ABC, Generic[StepColumn]):
    """Whole numbers as distance from the lowest; codes apart are past the range, or the lowest."""

    arrow_type: Any

    def __init__(self, column: StepColumn) -> None:
        line = column.line
        assert isinstance(line, IntegerColumn)
        self.column = column
        self._line = line
        self._range = line.upper - line.lower
        self._missing = self._range + 1 if column.apart else 0
        self.dtype = smallest_unsigned(self._range + len(column.apart))

    @abstractmethod
    def encode(self, cells: Any) -> Array:
        """The stored value of each cell."""

    @abstractmethod
    def decode(self, stored: Array) -> Any:
        """The values as an Arrow array, missing as null."""

    @abstractmethod
    def _written(self, stored: Array) -> Any:
        """The texts of stored values that are not apart."""

    def stored_kind(self, kind: str) -> int:
        """The stored value of a kind of missing values."""
        apart = self.column.apart
        return self._missing + (apart.index(kind) if kind in apart else 0)

    def kinds(self, stored: Array) -> Array:
        """For each cell 0, or 1 plus the position of its kind of missing values."""
        kinds = np.maximum(stored.astype(np.int64) - self._range, 0)
        return np.where(kinds > len(self.column.kinds), 0, kinds)

    def writer(self, quoted: Callable[[str], str]) -> Callable[[Array], Any]:
        """Write stored values as cells of a CSV file; an empty spelling of missing is not quoted."""
        return lambda stored: self._texts(stored, quoted)

    def _texts(self, stored: Array, quoted: Callable[[str], str]) -> Any:
        distinct, place = np.unique(stored, return_inverse=True)
        apart = distinct > self._range
        values = [quoted(text) for text in self._written(distinct[~apart])]
        others = [quoted(text) if text else "" for text in self._spelled(distinct[apart])]
        return pa.array([*values, *others], pa.large_string()).take(pa.array(place))

    def _spelled(self, stored: Array) -> list[str]:
        return [self.column.spellings[code] for code in stored.astype(np.int64) - self._range - 1]

    def numbers(self, stored: Array) -> Array:
        """The numbers as float64, which is exact up to 2**53; missing as in synth/missing.py."""
        numbers = stored.astype(np.float64) + self._line.lower
        apart = stored > self._range
        if self.column.apart:
            kinds = numbers_of_kinds(len(self.column.apart))
            numbers[apart] = kinds[stored[apart].astype(np.int64) - self._range - 1]
        return numbers

    def from_numbers(self, numbers: Array) -> Array:
        """Convert numbers to stored values: rounded and clamped; missing is kept if allowed."""
        lower, upper = self._line.lower, self._line.upper
        kinds = kinds_in(numbers, len(self.column.apart))
        whole = np.rint(np.clip(np.where(kinds > 0, lower, numbers), lower, upper))
        # Subtract as integers: a difference beyond 2**53 has no exact float.
        stored = whole.astype(np.int64) - lower
        missing = kinds > 0
        stored[missing] = self._missing + kinds[missing] - 1 if self.column.apart else 0
        return np.asarray(stored, self.dtype)

    def discretise(self, stored: Array) -> Array:
        """The bin of each value; codes apart come after the bins."""
        if stored.dtype.itemsize > 2:
            return self._bins_of(stored)
        # A lookup in a small table of every stored value is faster than a search.
        return np.take(self._bin_table, stored)

    def _bins_of(self, stored: Array) -> Array:
        places = stored.astype(np.int64)
        bins = np.searchsorted(self._starts[1:], places, side="right")
        bins = np.where(places > self._range, len(self._starts) - 1 + places - self._range, bins)
        return np.minimum(bins, self._line.size - 1).astype(smallest_unsigned(self._line.size - 1))

    @cached_property
    def _bin_table(self) -> Array:
        return self._bins_of(np.arange(np.iinfo(self.dtype).max + 1))

    @cached_property
    def _starts(self) -> npt.NDArray[np.int64]:
        edges = self._line.edges
        return np.array([int(edge) - self._line.lower for edge in edges[:-1]], np.int64)

    def draw(self, codes: Codes, rng: np.random.Generator) -> Array:
        """Draw whole numbers from their bins, by the shape of these; the last bin is closed."""
        starts, cells = pieces_of(self._pieces, self._starts, codes, rng, lower=self._line.lower)
        # A code apart is drawn from a bin that contains nothing else.
        apart = self._range + 1 + np.arange(len(self.column.apart))
        first = np.concatenate([starts, apart])
        last = np.concatenate([starts[1:] - 1, [self._range], apart])
        drawn = rng.integers(first[cells], last[cells], endpoint=True)
        return np.asarray(drawn, self.dtype)

    @cached_property
    def _pieces(self) -> Pieces | None:
        return Pieces.of(self._line)


class IntegerCodec(StepCodec[IntegerColumn]):
    """Integers as distance from `lower`."""

    arrow_type = pa.int64()

    def encode(self, cells: Any) -> Array:
        """Distances from `lower`, clamped and then rounded."""
        return self.from_numbers(numbers_and_kinds(cells, self.column))

    def decode(self, stored: Array) -> Any:
        """Integers as an Arrow int64 array, missing as null."""
        missing = stored > self._range
        return pa.array(stored.astype(np.int64) + self._line.lower, pa.int64(), mask=missing)

    def _texts(self, stored: Array, quoted: Callable[[str], str]) -> Any:
        texts = pc.cast(self.decode(stored), pa.large_string())
        return with_spellings(texts, self.kinds(stored), self.column, quoted)

    def _written(self, stored: Array) -> Any:
        return [str(value + self._line.lower) for value in stored.tolist()]


class OrdinalCodec(StepCodec[OrdinalColumn]):
    """Ordered categories as their position."""

    def __init__(self, column: OrdinalColumn) -> None:
        super().__init__(column)
        self.arrow_type = pa.dictionary(pa.int32(), pa.string())
        self._matching = self._new_matching()

    def _new_matching(self) -> Matching:
        column = self.column
        meanings = {text: code for code, text in enumerate(column.values)}
        other = meanings.get(column.other, self.stored_kind(column.other))
        missing = self._missing if column.kinds else other
        meanings.setdefault(column.other, other)
        for spelling, kind in column.kind_of_spelling.items():
            meanings.setdefault(spelling, self.stored_kind(kind) if column.kinds else other)
        return Matching(meanings, other=other, missing=missing)

    def encode(self, cells: Any) -> Array:
        """Positions of the cells: an exact match, else a match after trimming, else `other`."""
        texts = texts_of(cells, column=self.column.name)
        return self._matching.codes(texts).astype(self.dtype)

    def decode(self, stored: Array) -> Any:
        """Values as an Arrow dictionary array, missing as null."""
        texts = self.column.texts
        kinds = len(self.column.kinds)
        # `other` without a place in the order is stored after the kinds of missing values.
        codes = np.where(stored > self._range, len(texts) - 1, stored).astype(np.int32)
        missing = (stored > self._range) & (stored <= self._range + kinds)
        return pa.DictionaryArray.from_arrays(
            pa.array(codes, mask=missing), pa.array(texts, pa.string())
        )

    def _written(self, stored: Array) -> Any:
        return [self.column.values[code] for code in stored]

    def _spelled(self, stored: Array) -> list[str]:
        names = [*self.column.spellings, self.column.other]
        return [names[code] for code in stored.astype(np.int64) - self._range - 1]


class TimeCodec(StepCodec[DateColumn | DatetimeColumn]):
    """Dates and times as periods since that of `lower`."""

    def __init__(self, column: DateColumn | DatetimeColumn) -> None:
        super().__init__(column)
        self.arrow_type = pa.date32() if column.is_date else pa.timestamp("us")

    def encode(self, cells: Any) -> Array:
        """Periods since `lower`, clamped; unreadable cells are missing."""
        cells = plain(cells)
        if is_temporal(cells.type):
            periods, missing = periods_in(cells, self.column.resolution)
            stored = np.clip(periods - self.column.first_period, 0, self._range)
            stored[missing] = self._missing
            return stored.astype(self.dtype)
        texts = texts_of(cells, column=self.column.name)
        distinct = pc.dictionary_encode(texts)
        table = [self._meaning(text) for text in distinct.dictionary.to_pylist()]
        known = np.array([*table, self._missing], np.int64)
        indices = np.asarray(pc.fill_null(distinct.indices, -1))
        return np.asarray(known[indices], self.dtype)

    def _meaning(self, text: str) -> int:
        """The stored value of a text."""
        kind = self.column.kind_of_spelling.get(text.strip())
        if kind is not None:
            return self.stored_kind(kind)
        moment = self.column.time_format.read(text)
        if moment is None:
            return self._missing
        period = period_of(moment, self.column.resolution) - self.column.first_period
        return min(max(period, 0), self._range)

    def decode(self, stored: Array) -> Any:
        """Dates as Arrow dates or timestamps, missing as null."""
        missing = stored > self._range
        periods = np.where(missing, 0, stored.astype(np.int64)) + self.column.first_period
        moments = moments_of(periods, self.column.resolution)
        unit = "datetime64[D]" if self.column.is_date else "datetime64[us]"
        return pa.array(moments.astype(unit), self.arrow_type, mask=missing)

    def _written(self, stored: Array) -> Any:
        return [self.column.write(code) for code in stored]


def with_spellings(
    texts: Any, kinds: Array, column: NumberColumn, quoted: Callable[[str], str]
) -> Any:
    """The texts of numbers, in which null becomes the spelling of its kind of missing values."""
    spelled = [quoted(text) if text else "" for text in column.spellings]
    if len(spelled) < 2:
        return pc.fill_null(texts, "".join(spelled))
    missing = pa.array([*spelled], pa.large_string()).take(pa.array(np.maximum(kinds - 1, 0)))
    return pc.coalesce(texts, missing)
