"""Codecs that convert a declared column's cells to the numbers of a chunk and back.

There is one codec per type of column. A codec is built once from the declaration and holds no data.
Cells outside the declaration are mapped into it; they are never dropped, counted or reported.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from scrim.spec.columns import (
    DateColumn,
    DatetimeColumn,
    IdentifierColumn,
    IntegerColumn,
    LabelledColumn,
    NumberColumn,
    OrdinalColumn,
)
from scrim.spec.schema import Attribute, Column, Schema, is_discrete
from synth.table.cells import texts_of
from synth.table.chunk import DIGEST, Array, Chunk, TableError
from synth.table.labelled import LabelledCodec
from synth.table.reals import RealCodec
from synth.table.steps import IntegerCodec, OrdinalCodec, TimeCodec

Codes = npt.NDArray[np.integer[Any]]


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


AttributeCodec = LabelledCodec | IntegerCodec | OrdinalCodec | TimeCodec | RealCodec
Codec = AttributeCodec | IdentifierCodec


def codec_of(column: Column) -> Codec:
    """The codec of one declared column."""
    if isinstance(column, IdentifierColumn):
        return IdentifierCodec(column)
    return attribute_codec(column)


def attribute_codec(column: Attribute) -> AttributeCodec:
    """The codec of one released column."""
    if isinstance(column, LabelledColumn):
        return LabelledCodec(column)
    if isinstance(column, OrdinalColumn):
        return OrdinalCodec(column)
    if isinstance(column, DateColumn | DatetimeColumn):
        return TimeCodec(column)
    return IntegerCodec(column) if isinstance(column, IntegerColumn) else RealCodec(column)


def arrow_fields(codec: AttributeCodec) -> Iterator[tuple[str, Any]]:
    """The columns of a Parquet file: the values, and the kinds of missing values if there are several."""
    yield codec.column.name, codec.arrow_type
    if len(codec.column.kinds) > 1:
        yield codec.column.name_of_kinds, pa.dictionary(pa.int32(), pa.string())


def arrow_arrays(codec: AttributeCodec, stored: Array) -> Iterator[Any]:
    """The content of these columns."""
    yield codec.decode(stored)
    if len(codec.column.kinds) > 1:
        kinds = codec.kinds(stored).astype(np.int32)
        yield pa.DictionaryArray.from_arrays(
            pa.array(kinds - 1, mask=kinds == 0), pa.array(codec.column.kinds, pa.string())
        )


def require_bins(column: Attribute) -> None:
    """Refuse a column of numbers that has no discrete codes."""
    if not is_discrete(column):
        raise TableError(f"column {column.name!r} has no bins; declare a width, count or edges")
    if isinstance(column, NumberColumn) and column.line.awaits_edges:
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
