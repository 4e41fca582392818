"""Codecs that convert a declared column's cells to the numbers of a chunk and back.

There is one codec per type of column. A codec is built once from the declaration and holds no data.
Cells outside the declaration are mapped into it; they are never dropped, counted or reported.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from scrim.spec.columns import CategoricalColumn, IdentifierColumn, IntegerColumn, RealColumn
from scrim.spec.schema import Attribute, Column, Schema
from synth.table.cells import numbers_of, texts_of
from synth.table.chunk import DIGEST, Array, Chunk, TableError
from synth.table.grid import round_within
from synth.table.pieces import Pieces, pieces_of

Codes = npt.NDArray[np.integer[Any]]


def smallest_unsigned(largest: int) -> np.dtype[Any]:
    """The smallest unsigned type that holds `largest`."""
    return np.min_scalar_type(largest)


class CategoricalCodec:
    """Labels as their index; missing as one past the last label, or as `other`."""

    def __init__(self, column: CategoricalColumn) -> None:
        labels = column.labels
        self.column = column
        self.dtype = smallest_unsigned(column.size - 1)
        self.labels = pa.array(labels, pa.string())
        self.arrow_type = pa.dictionary(pa.int32(), pa.string())
        self._other = labels.index(column.other)
        self._missing = len(labels) if column.nullable else self._other
        self._empty_is_declared = "" in labels

    def encode(self, cells: Any) -> Array:
        """Codes of the cells: an exact match, else a match after trimming, else `other`."""
        texts = texts_of(cells, column=self.column.name)
        if not self._empty_is_declared:
            texts = _empty_as_missing(texts)
        codes = pc.index_in(texts, value_set=self.labels)
        unknown = pc.and_(pc.is_null(codes), pc.is_valid(texts))
        if pc.any(unknown).as_py():
            trimmed = pc.utf8_trim_whitespace(texts.filter(unknown))
            found = pc.fill_null(pc.index_in(trimmed, value_set=self.labels), self._other)
            codes = pc.replace_with_mask(codes, unknown, pc.cast(found, codes.type))
        return np.asarray(pc.fill_null(codes, self._missing)).astype(self.dtype)

    def decode(self, stored: Array) -> Any:
        """Labels as an Arrow dictionary array, missing as null."""
        missing = stored == len(self.labels)
        return pa.DictionaryArray.from_arrays(
            pa.array(stored.astype(np.int32), mask=missing), self.labels
        )

    def discretise(self, stored: Array) -> Array:
        """The codes themselves."""
        return stored

    def numbers(self, stored: Array) -> Array:
        """The codes themselves, which are a category's only numbers."""
        return stored

    def from_numbers(self, numbers: Array) -> Array:
        """Convert the output of `numbers` back to codes of the stored type."""
        return np.clip(np.rint(numbers), 0, self.column.size - 1).astype(self.dtype)

    def draw(self, codes: Codes, rng: np.random.Generator) -> Array:
        """The codes themselves, in the stored type."""
        return codes.astype(self.dtype)


class IntegerCodec:
    """Integers as distance from `lower`; missing as one past the range, or as `lower`."""

    arrow_type = pa.int64()

    def __init__(self, column: IntegerColumn) -> None:
        self.column = column
        self._range = column.upper - column.lower
        self._missing = self._range + 1 if column.nullable else 0
        self.dtype = smallest_unsigned(max(self._range, self._missing))

    def encode(self, cells: Any) -> Array:
        """Distances from `lower`, clamped and then rounded."""
        return self.from_numbers(numbers_of(cells, column=self.column.name))

    def decode(self, stored: Array) -> Any:
        """Integers as an Arrow int64 array, missing as null."""
        missing = stored > self._range
        return pa.array(stored.astype(np.int64) + self.column.lower, pa.int64(), mask=missing)

    def numbers(self, stored: Array) -> Array:
        """The declared numbers as float64, which is exact up to 2**53; missing as NaN."""
        numbers = stored.astype(np.float64) + self.column.lower
        numbers[stored > self._range] = np.nan
        return numbers

    def from_numbers(self, numbers: Array) -> Array:
        """Convert numbers to stored values: rounded and clamped; missing is kept if allowed."""
        lower, upper = self.column.lower, self.column.upper
        missing = np.isnan(numbers)
        whole = np.rint(np.clip(np.where(missing, lower, numbers), lower, upper))
        # Subtract as integers: a difference beyond 2**53 has no exact float.
        stored = whole.astype(np.int64) - lower
        stored[missing] = self._missing
        return np.asarray(stored, self.dtype)

    def discretise(self, stored: Array) -> Array:
        """The bin of each value; missing is the last code."""
        if stored.dtype.itemsize > 2:
            return self._bins_of(stored)
        # A lookup in a small table of every stored value is faster than a search.
        return np.take(self._bin_table, stored)

    def _bins_of(self, stored: Array) -> Array:
        bins = np.searchsorted(self._starts[1:], stored.astype(np.int64), side="right")
        bins[stored > self._range] = len(self._starts)
        return bins.astype(smallest_unsigned(self.column.size - 1))

    @cached_property
    def _bin_table(self) -> Array:
        return self._bins_of(np.arange(np.iinfo(self.dtype).max + 1))

    @cached_property
    def _starts(self) -> npt.NDArray[np.int64]:
        edges = self.column.edges
        return np.array([int(edge) - self.column.lower for edge in edges[:-1]], np.int64)

    def draw(self, codes: Codes, rng: np.random.Generator) -> Array:
        """Draw integers from their bins, by the shape of these; the last bin is closed."""
        starts, cells = pieces_of(self._pieces, self._starts, codes, rng, lower=self.column.lower)
        # Missing is drawn from a bin that contains nothing else.
        first = np.append(starts, self._missing)
        last = np.concatenate([starts[1:] - 1, [self._range, self._missing]])
        drawn = rng.integers(first[cells], last[cells], endpoint=True)
        return np.asarray(drawn, self.dtype)

    @cached_property
    def _pieces(self) -> Pieces | None:
        return Pieces.of(self.column)


class RealCodec:
    """Real numbers unchanged; missing as NaN, or as `lower`."""

    arrow_type = pa.float64()
    dtype = np.dtype(np.float64)

    def __init__(self, column: RealColumn) -> None:
        self.column = column
        self.decimals = column.decimals

    def encode(self, cells: Any) -> Array:
        """The numbers, clamped; a negative zero becomes zero."""
        return self.from_numbers(numbers_of(cells, column=self.column.name))

    def numbers(self, stored: Array) -> Array:
        """The numbers themselves; missing as NaN."""
        return stored

    def from_numbers(self, numbers: Array) -> Array:
        """Convert numbers to stored values: clamped; missing is kept if allowed."""
        # All NaNs get the same bits: those that Arrow returns for a cell may depend on other cells.
        missing = np.nan if self.column.nullable else self.column.lower
        kept = np.where(np.isnan(numbers), missing, numbers)
        return np.clip(kept, self.column.lower, self.column.upper) + 0.0

    def decode(self, stored: Array) -> Any:
        """Numbers as an Arrow float64 array, rounded to the declared digits, missing as null."""
        return pa.array(self.rounded(stored), pa.float64(), mask=np.isnan(stored))

    def discretise(self, stored: Array) -> Array:
        """The bin of each value; missing is the last code."""
        bins = np.searchsorted(self._edges[1:-1], stored, side="right")
        bins[np.isnan(stored)] = len(self._edges) - 1
        return bins.astype(smallest_unsigned(self.column.size - 1))

    def rounded(self, stored: Array) -> Array:
        """Round numbers to the declared decimals, as in a release."""
        if self.decimals is None:
            return stored
        return round_within(stored, self.column.lower, self.column.upper, self.decimals)

    def draw(self, codes: Codes, rng: np.random.Generator) -> Array:
        """Draw numbers from their bins, by the shape of these, and round them without leaving their bins."""
        starts, cells = pieces_of(self._pieces, self._edges[:-1], codes, rng)
        # Half-open bins end just below their upper edge; missing is a bin of NaN.
        ends = np.append(np.nextafter(starts[1:], -np.inf), self._edges[-1])
        low = np.append(starts, np.nan)[cells]
        high = np.append(ends, np.nan)[cells]
        values = np.minimum(low + (high - low) * rng.random(len(codes)), high) + 0.0
        return values if self.decimals is None else round_within(values, low, high, self.decimals)

    @cached_property
    def _edges(self) -> npt.NDArray[np.float64]:
        return np.array(self.column.edges)

    @cached_property
    def _pieces(self) -> Pieces | None:
        return Pieces.of(self.column)


class IdentifierCodec:
    """Identifiers as 16 bytes of BLAKE2b of their trimmed text; missing as zero bytes."""

    dtype = DIGEST

    def __init__(self, column: IdentifierColumn) -> None:
        self.column = column

    def encode(self, cells: Any) -> Array:
        """Digests of the cells, computed once for each distinct text."""
        # Trimmed, so that "7" and "7 " are the same person.
        texts = pc.utf8_trim_whitespace(texts_of(cells, column=self.column.name))
        distinct = pc.dictionary_encode(_empty_as_missing(texts))
        digests = [
            blake2b(text, digest_size=16).digest() for text in _bytes_of(distinct.dictionary)
        ]
        table = np.frombuffer(bytes(DIGEST.itemsize) + b"".join(digests), DIGEST)
        return np.take(table, np.asarray(pc.fill_null(distinct.indices, -1)) + 1)


AttributeCodec = CategoricalCodec | IntegerCodec | RealCodec
Codec = AttributeCodec | IdentifierCodec


def codec_of(column: Column) -> Codec:
    """The codec of one declared column."""
    if isinstance(column, IdentifierColumn):
        return IdentifierCodec(column)
    return attribute_codec(column)


def attribute_codec(column: Attribute) -> AttributeCodec:
    """The codec of one released column."""
    if isinstance(column, CategoricalColumn):
        return CategoricalCodec(column)
    return IntegerCodec(column) if isinstance(column, IntegerColumn) else RealCodec(column)


def require_bins(column: Attribute) -> None:
    """Refuse a column of numbers that has no discrete codes."""
    if not isinstance(column, CategoricalColumn) and column.bins is None:
        raise TableError(f"column {column.name!r} has no bins; declare a width, count or edges")
    if not isinstance(column, CategoricalColumn) and column.awaits_edges:
        raise TableError(
            f"the adaptive bins of column {column.name!r} have no edges yet; place them"
        )


def locate_columns(schema: Schema, found: Sequence[str]) -> list[int]:
    """The position of each declared column among the names of a file."""
    # Messages quote only declared names: if the file has no header, `found` is a row.
    times = Counter(found)
    for column in schema.columns:
        if times[column.name] == 0:
            raise TableError(
                f"column {column.name!r} is missing; add it to the file, with the same spelling in "
                "the header, or remove it from the schema"
            )
        if times[column.name] > 1:
            raise TableError(f"column {column.name!r} appears more than once; keep one of them")
    # A dictionary, because a file may have many undeclared columns.
    position = {name: index for index, name in enumerate(found)}
    return [position[column.name] for column in schema.columns]


def draw_values(schema: Schema, codes: Mapping[str, Codes], rng: np.random.Generator) -> Chunk:
    """Draw a chunk from discrete codes; numbers are uniform inside their bins."""
    if len({len(array) for array in codes.values()}) != 1:
        raise TableError("the codes of all columns must have the same length")
    drawn = {
        column.name: draw_column(column, _codes_of(column, codes), rng)
        for column in schema.attributes
    }
    return with_blank_identifiers(schema, drawn)


def store_numbers(schema: Schema, numbers: Mapping[str, Array]) -> Chunk:
    """Convert numbers, as a table reads them, to a chunk with the declared types, bounds and decimals."""
    chunk: dict[str, Array] = {}
    for column in schema.attributes:
        codec = attribute_codec(column)
        stored = codec.from_numbers(numbers[column.name])
        chunk[column.name] = codec.rounded(stored) if isinstance(codec, RealCodec) else stored
    return with_blank_identifiers(schema, chunk)


def with_blank_identifiers(schema: Schema, attributes: Mapping[str, Array]) -> Chunk:
    """Return a chunk of released columns with blank identifiers, since its rows are not people."""
    rows = len(next(iter(attributes.values())))
    return {
        column.name: np.zeros(rows, DIGEST)
        if isinstance(column, IdentifierColumn)
        else attributes[column.name]
        for column in schema.columns
    }


def draw_column(column: Attribute, codes: Codes, rng: np.random.Generator) -> Array:
    """Draw a column from discrete codes; numbers are uniform inside their bins."""
    require_bins(column)
    if codes.size and (codes.min() < 0 or codes.max() >= column.size):
        raise TableError(f"column {column.name!r} has codes outside 0 to {column.size - 1}")
    return attribute_codec(column).draw(codes, rng)


def _codes_of(column: Attribute, codes: Mapping[str, Codes]) -> Codes:
    if column.name not in codes:
        raise TableError(f"column {column.name!r} has no codes; give codes for every attribute")
    return np.asarray(codes[column.name])


def _empty_as_missing(texts: Any) -> Any:
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)


def _bytes_of(texts: Any) -> list[bytes]:
    return list(pc.cast(texts, pa.binary()).to_pylist())
