"""Parquet files, read into chunks and written from them, a bounded piece at a time."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from io import SEEK_END
from itertools import accumulate, islice
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from scrim.spec.schema import Schema
from synth.table.bytestream import MAX_UNPACKED_BYTES, opened, refuse_unpacked
from synth.table.cells import longest_text
from synth.table.chunk import Chunk, TableError
from synth.table.encoding import (
    arrow_arrays,
    arrow_fields,
    attribute_codec,
    codec_of,
    locate_columns,
)
from synth.table.parquet_pages import DAMAGED_PARQUET, ParquetPage, pages_of

Source = str | PathLike[str] | BinaryIO
T = TypeVar("T")

CHUNK_ROWS = 2**18
"""Rows of a chunk: about 10 MiB for tables of a few dozen columns."""
FOOTER_BYTES = 2**23
"""Largest footer of a file, which lists the columns of every row group."""
PAGE_BYTES = 2**25
"""Largest page or dictionary of a declared column, unpacked."""
WORKING_BYTES = 3 * 2**28
"""Limit of the unpacked data of the declared columns at once: for each column the dictionary and one
page, and for text the rows of two pages."""
BATCH_BYTES = 2**26
"""Limit of the text that is decoded at a time, unless two pages of each column have more."""
MAX_PAGES = 2**18
"""Largest number of pages of the declared columns in one row group."""
PARQUET_SCHEMA_KEY = b"scrim.schema"
"""Metadata key under which a written file stores its schema as JSON."""
_BUFFER_BYTES = 2**20
"""Bytes that Arrow reads at a time."""
_TAIL_BYTES = 8
"""The length of the footer and a mark, at the end of every Parquet file."""

# Numbers in parquet.thrift. The decoded size of these encodings is unknown before decoding.
_UNBOUNDED = {6: "DELTA_LENGTH_BYTE_ARRAY", 7: "DELTA_BYTE_ARRAY"}

# A damaged column name raises a UnicodeDecodeError.
_ARROW_FAULTS = (pa.ArrowException, OSError, UnicodeDecodeError)


def read_parquet(
    source: Source,
    schema: Schema,
    *,
    chunk_rows: int = CHUNK_ROWS,
    max_bytes: int = MAX_UNPACKED_BYTES,
) -> Iterator[Chunk]:
    """The rows of a Parquet file as chunks of the declared columns. The source must be seekable."""
    if chunk_rows < 1:
        raise ValueError("chunk_rows must be at least 1")
    codecs = [codec_of(column) for column in schema.columns]
    names = [codec.column.name for codec in codecs]
    with opened(source, "rb") as stream:
        file = _unless_damaged(lambda: _open(stream, schema))
        unpacked = 0
        for number in range(file.num_row_groups):
            columns = _unless_damaged(partial(_pages_by_column, stream, file, number, names=names))
            unpacked += sum(max(p.size, p.values) for column in columns for p in column.pages)
            refuse_unpacked(unpacked, max_bytes)
            rows = _rows_at_once(columns, chunk_rows)
            batches = file.iter_batches(rows, row_groups=[number], columns=names)
            while (batch := _unless_damaged(partial(_next, batches))) is not None:
                yield {
                    codec.column.name: codec.encode(batch.column(codec.column.name))
                    for codec in codecs
                }


# Checks before decoding -------------------------------------------------------------------------


def _open(stream: BinaryIO, schema: Schema) -> Any:
    """Open the file and check that every declared column has a readable type."""
    if not stream.seekable():
        raise TableError("a Parquet file is read from its end; give a seekable source")
    _refuse_large_footer(stream)
    file = _parquet_file(stream)
    layout = file.schema_arrow
    locate_columns(schema, layout.names)
    for column in schema.columns:
        # Encoding an empty column is enough to refuse a type.
        codec_of(column).encode(pa.nulls(0, layout.field(column.name).type))
    return file


def _refuse_large_footer(stream: BinaryIO) -> None:
    """Refuse a large footer: Arrow reads it at once and uses many times its size."""
    size = stream.seek(0, SEEK_END)
    stream.seek(max(0, size - _TAIL_BYTES))
    if int.from_bytes(stream.read(_TAIL_BYTES)[:4], "little") > FOOTER_BYTES < size:
        raise TableError(
            f"the file's footer is larger than {FOOTER_BYTES // 2**20} MiB; write fewer columns, or "
            "larger row groups"
        )


def _parquet_file(
    stream: BinaryIO, *, metadata: Any = None, dictionaries: Sequence[str] = ()
) -> Any:
    # Small buffers and no read-ahead: a row group may be larger than memory.
    return pq.ParquetFile(
        stream,
        metadata=metadata,
        read_dictionary=dictionaries,
        pre_buffer=False,
        buffer_size=_BUFFER_BYTES,
        page_checksum_verification=True,
    )


@dataclass(frozen=True)
class _ColumnPages:
    """The pages of a column in a row group."""

    pages: list[ParquetPage]
    is_text: bool
    longest: int
    """Length of the longest text in the dictionary, which any number of rows may have."""

    @property
    def working_bytes(self) -> int:
        """The most memory that the column needs while it is read."""
        kept = [
            max((p.size for p in self.pages if p.is_dictionary == k), default=0) for k in (0, 1)
        ]
        return sum(kept) + self.text_bytes(2)

    def text_bytes(self, rows: int) -> int:
        """The most text that `rows` adjacent rows can contain."""
        return self._plain_bytes(rows) + rows * self.longest if self.is_text else 0

    def _plain_bytes(self, rows: int) -> int:
        """The size of the pages that `rows` adjacent rows can span."""
        pages = [page for page in self.pages if not page.is_dictionary]
        starts = list(accumulate((page.values for page in pages), initial=0))
        largest = size = first = 0
        for last, page in enumerate(pages):
            size += page.size
            # All rows of the pages between the first and the last, and one row of each of those two.
            while first < last and starts[last] - starts[first + 1] > rows - 2:
                size -= pages[first].size
                first += 1
            largest = max(largest, size)
        return largest


def _pages_by_column(
    stream: BinaryIO, file: Any, number: int, *, names: Sequence[str]
) -> list[_ColumnPages]:
    """The pages of the declared columns in a row group; refuse them if they exceed the memory limits."""
    group = file.metadata.row_group(number)
    found, left = [], MAX_PAGES
    for index in _leaves(file.schema, names):
        chunk = group.column(index)
        name, is_text = chunk.path_in_schema, chunk.physical_type == "BYTE_ARRAY"
        pages = list(islice(_readable(pages_of(stream, chunk), name), left + 1))
        left -= len(pages)
        if left < 0:
            raise TableError(
                f"a row group has more than {MAX_PAGES:,} pages; write smaller row groups, or larger "
                "pages"
            )
        longest = 0
        if is_text:
            _refuse_kept_text(file.schema_arrow, name, pages)
        if is_text and any(page.is_dictionary for page in pages):
            longest = _longest_of_dictionary(stream, file, number, name=name, pages=pages)
        found.append(_ColumnPages(pages, is_text, longest))
    if sum(column.working_bytes for column in found) > WORKING_BYTES:
        raise TableError(
            "the pages and dictionaries of all declared columns that are read at once unpack to more "
            f"than {WORKING_BYTES // 2**20} MiB; write smaller pages, and dictionaries only for columns "
            "of few values"
        )
    return found


def _longest_of_dictionary(
    stream: BinaryIO, file: Any, number: int, *, name: str, pages: list[ParquetPage]
) -> int:
    """The length of the longest text in a column's dictionary, found by reading one row."""
    probe = _parquet_file(stream, metadata=file.metadata, dictionaries=[name])
    batch = next(probe.iter_batches(1, row_groups=[number], columns=[name]), None)
    sizes = [page for page in pages if page.is_dictionary]
    if batch is None or len(sizes) > 1:
        raise TableError(DAMAGED_PARQUET)
    found = batch.column(name)
    if not pa.types.is_dictionary(found.type) or len(found.dictionary) < sizes[0].values:
        # The first page does not use the dictionary, so it is not loaded yet.
        return sizes[0].size
    return longest_text(found.dictionary, column=name)


def _refuse_kept_text(layout: Any, name: str, pages: list[ParquetPage]) -> None:
    """Refuse dictionary columns with much text: Arrow keeps every text of a row group in memory."""
    if name not in layout.names or not pa.types.is_dictionary(layout.field(name).type):
        return
    if sum(page.size for page in pages) > BATCH_BYTES:
        raise TableError(
            f"column {name!r} is written as categories, and a row group has more than "
            f"{BATCH_BYTES // 2**20} MiB of their text; write it as text, or smaller row groups"
        )


def _leaves(layout: Any, names: Sequence[str]) -> Iterator[int]:
    """The columns that Arrow reads for some names, including columns nested inside them."""
    wanted, inside = set(names), tuple(f"{name}." for name in names)
    for index in range(len(layout)):
        path = layout.column(index).path
        if path in wanted or path.startswith(inside):
            yield index


def _readable(pages: Iterable[ParquetPage], name: str) -> Iterator[ParquetPage]:
    """Yield the same pages; refuse a page whose size is unknown or too large."""
    for page in pages:
        if page.size > PAGE_BYTES:
            raise TableError(
                f"column {name!r} has a page or dictionary of more than {PAGE_BYTES // 2**20} MiB; write "
                "smaller pages, and shorten long cells"
            )
        if page.encoding in _UNBOUNDED:
            raise TableError(
                f"column {name!r} is stored in the encoding {_UNBOUNDED[page.encoding]}, whose size is "
                "not known before it is decoded; write it plain, or with a dictionary"
            )
        yield page


def _rows_at_once(columns: Sequence[_ColumnPages], most: int) -> int:
    """The number of rows decoded at a time, so that their text is bounded at any position."""
    allowed = max(BATCH_BYTES, sum(column.text_bytes(2) for column in columns))
    rows = most
    while rows > 2 and sum(column.text_bytes(rows) for column in columns) > allowed:
        rows //= 2
    return rows


# Decoding ---------------------------------------------------------------------------------------


def _next(batches: Iterator[Any]) -> Any:
    """The next batch, or None at the end."""
    batch = next(batches, None)
    if batch is not None:
        batch.validate()
    return batch


def _unless_damaged(step: Callable[[], T]) -> T:
    """Run a step of Arrow. Its own errors quote the file, so they are not chained."""
    try:
        return step()
    except _ARROW_FAULTS as error:
        if _is_the_systems(error):
            raise
    raise TableError(DAMAGED_PARQUET)


def _is_the_systems(error: Exception) -> bool:
    """Whether memory, the disk or the source failed, rather than Arrow on the file's content."""
    return isinstance(error, MemoryError) or (
        isinstance(error, OSError) and error.errno is not None
    )


def write_parquet(destination: Source, schema: Schema, chunks: Iterable[Chunk]) -> None:
    """Write the chunks as a Parquet file of the released columns; missing is null.

    Several kinds of missing values are told apart by a column beside theirs, with the name of the kind.
    """
    codecs = [attribute_codec(column) for column in schema.attributes]
    fields = [field for codec in codecs for field in arrow_fields(codec)]
    metadata = {PARQUET_SCHEMA_KEY: schema.model_dump_json().encode()}
    layout = pa.schema(fields, metadata=metadata)
    target = Path(destination) if isinstance(destination, str | PathLike) else destination
    with pq.ParquetWriter(target, layout) as writer:
        for chunk in chunks:
            arrays = [a for codec in codecs for a in arrow_arrays(codec, chunk[codec.column.name])]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=layout))
