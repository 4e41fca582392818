"""The pages of a Parquet file, read from their headers before decoding.

Sizes in a file's footer are not reliable. The size in a page's own header is a limit that Arrow enforces:
a page that unpacks to more is refused. So these headers bound the memory that a file needs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from synth.table.chunk import TableError

HEADER_BYTES = 2**20
"""Largest header of a page; writers omit statistics longer than a few kilobytes."""
_USUAL_HEADER_BYTES = 2**12
"""Read first: nearly all headers of pages are shorter."""
DAMAGED_PARQUET = "the file is not Parquet, or is damaged or encrypted; write and upload it again"

# Field numbers of `PageHeader` in parquet.thrift, and the field of the value count of each kind of page.
_UNCOMPRESSED, _COMPRESSED = 2, 3
_DATA, _DICTIONARY, _DATA_V2 = 5, 7, 8
_VALUES, _ENCODING = 1, {_DATA: 2, _DICTIONARY: 2, _DATA_V2: 4}

# Types of the compact protocol (Apache Thrift).
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS = (4, 5, 6)
_MAX_DEPTH = 8
"""Deepest nesting of a header; page headers have three levels."""


@dataclass(frozen=True, slots=True)
class ParquetPage:
    """The header of one page."""

    is_dictionary: bool
    encoding: int
    values: int
    """Number of cells; in a dictionary, of distinct values."""
    size: int
    """Bytes after decompression."""


def pages_of(file: BinaryIO, chunk: Any) -> Iterator[ParquetPage]:
    """The pages that Arrow reads of a column in a row group, in order."""
    start, left = chunk.data_page_offset, chunk.total_compressed_size
    dictionary = chunk.dictionary_page_offset if chunk.has_dictionary_page else None
    if dictionary is not None and 0 < dictionary < start:
        start = dictionary
    seen = 0
    while seen < chunk.num_values and left > 0:
        fields, length = _header(file, start)
        page = _page(fields)
        length += fields[_COMPRESSED]
        start, left = start + length, left - length
        if page is not None:
            seen += 0 if page.is_dictionary else page.values
            yield page


def _header(file: BinaryIO, start: int) -> tuple[dict[int, Any], int]:
    """The fields of the header at a position, and its length."""
    for most in (_USUAL_HEADER_BYTES, HEADER_BYTES):
        file.seek(start)
        reader = _CompactReader(file.read(most))
        try:
            return reader.struct(), reader.position
        except EOFError:
            continue
    raise TableError(DAMAGED_PARQUET)


def _page(fields: dict[int, Any]) -> ParquetPage | None:
    """The page that a header describes; None for kinds that Arrow skips."""
    sizes = [fields.get(_UNCOMPRESSED), fields.get(_COMPRESSED)]
    if not all(isinstance(size, int) and size >= 0 for size in sizes):
        raise TableError(DAMAGED_PARQUET)
    for kind, encoding in _ENCODING.items():
        about = fields.get(kind)
        if isinstance(about, dict):
            values, encoded = about.get(_VALUES), about.get(encoding)
            if not isinstance(values, int) or not isinstance(encoded, int) or values < 0:
                break
            return ParquetPage(kind == _DICTIONARY, encoded, values, fields[_UNCOMPRESSED])
    else:
        return None
    raise TableError(DAMAGED_PARQUET)


class _CompactReader:
    """Reads structures in Thrift's compact protocol, the format of page headers."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Fields by number: integers and structures; everything else is skipped."""
        found: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != _STOP:
            kind, step = head & 0x0F, head >> 4
            number = number + step if step else self._integer()
            found[number] = self._value(kind, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise TableError(DAMAGED_PARQUET)
        if kind in (_TRUE, _FALSE):
            return None
        if kind in _INTEGERS:
            return self._integer()
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in (_LIST, _SET):
            return self._skip_list(depth)
        sizes = {_BYTE: 1, _DOUBLE: 8}
        if kind != _BINARY and kind not in sizes:
            raise TableError(DAMAGED_PARQUET)
        self._skip(self._varint() if kind == _BINARY else sizes[kind])
        return None

    def _skip_list(self, depth: int) -> None:
        head = self._byte()
        kind, size = head & 0x0F, head >> 4
        for _ in range(self._varint() if size == 15 else size):
            # In a list, a boolean takes one byte.
            self._value(_BYTE if kind in (_TRUE, _FALSE) else kind, depth + 1)

    def _byte(self) -> int:
        self._skip(1)
        return self._data[self.position - 1]

    def _skip(self, size: int) -> None:
        self.position += size
        if self.position > len(self._data):
            raise EOFError

    def _integer(self) -> int:
        raw = self._varint()
        return (raw >> 1) ^ -(raw & 1)

    def _varint(self) -> int:
        found, shift = 0, 0
        while shift < 70:
            byte = self._byte()
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return found
        raise TableError(DAMAGED_PARQUET)
