"""CSV files, read into chunks and written from them, a bounded piece at a time."""

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from scrim.spec.schema import Schema
from synth.table.bytestream import (
    MAX_UNPACKED_BYTES,
    Destination,
    Source,
    checked_utf8,
    opened,
    pieces_of,
    stream_of,
    unzipped_if_gzip,
)
from synth.table.chunk import Chunk, TableError
from synth.table.encoding import (
    Codec,
    attribute_codec,
    codec_of,
    locate_columns,
)

CHUNK_ROWS = 2**18
"""Rows of a chunk: about 10 MiB for tables of a few dozen columns."""
PARSED_BYTES = 4 * 2**20
"""Number of bytes parsed at a time; a row must fit into it."""
HEADER_BYTES = 2**20
"""Longest header of a file."""
_WRITTEN_CELLS = 2**20
"""Cells that are written at a time."""

_HEADER_FIELD = re.compile(rb'(?:"((?:[^"]|"")*+)"|([^",\r\n][^,\r\n]*+|))(,|\r\n|\r|\n|\Z)')
_NEEDS_QUOTES = re.compile(r'[",\r\n\ufeff]|^\s|\s$|^$')


def read_csv(
    source: Source,
    schema: Schema,
    *,
    chunk_rows: int = CHUNK_ROWS,
    max_bytes: int = MAX_UNPACKED_BYTES,
) -> Iterator[Chunk]:
    """The rows of a CSV file, plain or gzip, as chunks of the declared columns."""
    if chunk_rows < 1:
        raise ValueError("chunk_rows must be at least 1")
    with opened(source, "rb") as stream:
        plain = stream_of(checked_utf8(unzipped_if_gzip(stream, max_bytes=max_bytes)))
        head = plain.read(HEADER_BYTES)
        names, start = _parse_header(head)
        positions = locate_columns(schema, names)
        column_codecs = [codec_of(column) for column in schema.columns]
        watch = _RowWatch(len(names))
        rows = stream_of(_marked_end(head[start:], plain, watch.mark))
        for batch in _batches(rows, len(names), positions, watch):
            for first in range(0, batch.num_rows, chunk_rows):
                yield _encode(column_codecs, batch.slice(first, chunk_rows))


def _encode(column_codecs: Sequence[Codec], batch: Any) -> Chunk:
    return {
        codec.column.name: codec.encode(cells)
        for codec, cells in zip(column_codecs, batch.columns, strict=True)
    }


# Header -----------------------------------------------------------------------------------------


def _parse_header(head: bytes) -> tuple[list[str], int]:
    """The names in the header, and the position of the first row."""
    if not head:
        raise TableError("the file is empty; it needs at least a header with the column names")
    names: list[bytes] = []
    position = 3 if head.startswith(b"\xef\xbb\xbf") else 0
    while True:
        field = _HEADER_FIELD.match(head, position)
        if field is None:
            raise TableError("the header cannot be parsed; check its quotes and commas")
        quoted, bare, end = field.groups()
        names.append(bare if quoted is None else quoted.replace(b'""', b'"'))
        position = field.end()
        if end != b",":
            break
    if not end and len(head) == HEADER_BYTES:
        raise TableError(f"the header is longer than {HEADER_BYTES} bytes; shorten it")
    if b"\x00" in head[:position]:
        # UTF-16 without a byte order mark is valid UTF-8 with a zero byte after every letter.
        raise TableError("the header holds zero bytes; save the file as UTF-8 text")
    return [name.decode() for name in names], position


# Rows -------------------------------------------------------------------------------------------


class _RowWatch:
    """Detects ragged rows and the end of the file, and stores no text of any row.

    A quote that is opened and never closed silently absorbs every row after it. So one more line is
    appended to the file, with a secret mark and one field too many: if the parser does not report it,
    it was absorbed.
    """

    def __init__(self, fields: int) -> None:
        self._text = secrets.token_hex(16) + "," * fields
        self.mark = self._text.encode()
        self.reached_end = False
        self.ragged: tuple[int, int] | None = None

    def __call__(self, row: Any) -> str:
        if row.text == self._text:
            self.reached_end = True
            return "skip"
        self.ragged = (row.expected_columns, row.actual_columns)
        return "error"


def _marked_end(first: bytes, rest: BinaryIO, mark: bytes) -> Iterator[bytes]:
    """Yield all rows, then a separate line with the mark."""
    last = b"\n"
    for piece in chain([first], pieces_of(rest)):
        last = piece[-1:] or last
        yield piece
    yield mark if last in b"\r\n" else b"\n" + mark


def _batches(rows: BinaryIO, fields: int, positions: list[int], watch: _RowWatch) -> Iterator[Any]:
    """The rows as Arrow batches of strings, one column for each of the positions."""
    problem: str | None = None
    try:
        with _open_reader(rows, fields, positions, watch) as reader:
            yield from reader
    except MemoryError:
        raise  # also Arrow's own memory errors: the file is not at fault
    except pa.ArrowException as error:
        problem = _explain(str(error), watch)
    if problem is None and not watch.reached_end:
        problem = "a quoted cell is opened and never closed; check the quotes in the file"
    if problem is not None:
        raise TableError(problem)


def _open_reader(rows: BinaryIO, fields: int, positions: list[int], watch: _RowWatch) -> Any:
    # Columns are identified by position, because undeclared names may repeat.
    wanted = [str(position) for position in positions]
    return arrow_csv.open_csv(
        rows,
        read_options=arrow_csv.ReadOptions(
            column_names=[str(position) for position in range(fields)], block_size=PARSED_BYTES
        ),
        parse_options=arrow_csv.ParseOptions(
            newlines_in_values=True,
            # In a file of one column an empty line is a row with a missing value.
            ignore_empty_lines=fields > 1,
            invalid_row_handler=watch,
        ),
        convert_options=arrow_csv.ConvertOptions(
            include_columns=wanted,
            column_types=dict.fromkeys(wanted, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            check_utf8=False,
        ),
    )


def _explain(message: str, watch: _RowWatch) -> str:
    """Rewrite Arrow's message, which would quote a row."""
    if watch.ragged is not None:
        expected, actual = watch.ragged
        return (
            f"a row has {actual} fields where the header has {expected}; "
            "quote cells that contain commas or quotes"
        )
    if "straddling" in message:
        limit = PARSED_BYTES // 2**20
        return f"a row is larger than {limit} MiB, or a quoted cell is opened and never closed"
    return "the file cannot be parsed as CSV; separate cells by commas and quote them by RFC 4180"


# Writing ----------------------------------------------------------------------------------------


def write_csv(
    destination: Destination,
    schema: Schema,
    chunks: Iterable[Chunk],
    *,
    escape: Callable[[str], str] = str,
) -> None:
    """Write the chunks as a CSV file of the released columns; missing is an empty cell without quotes,
    or the declared spelling of its kind. Names and texts go through `escape`."""

    def quoted(text: str) -> str:
        return _quoted_if_needed(escape(text))

    writers = {c.name: attribute_codec(c).writer(quoted) for c in schema.attributes}
    header = ",".join(map(quoted, writers)) + "\n"
    # Wide tables are written a few rows at a time, so that the text of a piece stays small.
    step = max(1, _WRITTEN_CELLS // len(writers))
    with opened(destination, "wb") as stream:
        stream.write(header.encode())
        for chunk in chunks:
            for first in range(0, _length(chunk), step):
                columns = [
                    write(chunk[name][first : first + step]) for name, write in writers.items()
                ]
                stream.write(_lines(columns))


def _length(chunk: Chunk) -> int:
    return len(next(iter(chunk.values())))


def _lines(columns: list[Any]) -> memoryview:
    """Join the cells of each row by commas, and end every row with a newline."""
    rows = pc.binary_join_element_wise(*columns, pa.scalar(",", pa.large_string()))
    empty, newline = pa.scalar("", pa.large_string()), pa.scalar("\n", pa.large_string())
    lines = pc.binary_join_element_wise(rows, empty, newline)
    # Arrow keeps the strings of an array one after another: together they are the file's text.
    return memoryview(lines.buffers()[2])


def _quoted_if_needed(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _NEEDS_QUOTES.search(text) else text
