"""The bytes of a file or upload, piece by piece: decompressed, checked, and never all in memory."""

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Protocol, Self

from synth.table.chunk import TableError

PIECE_BYTES = 2**20
"""Size of the pieces in which files are read."""
MAX_UNPACKED_BYTES = 2**36
"""Largest decompressed size of a table: 64 GiB."""
MAX_RATIO = 250
"""Largest compression ratio of a gzip file; text of tables compresses 5 to 50 times."""
_ALWAYS_UNPACKED = 2**26
"""Up to 64 MiB, a gzip file of any ratio is decompressed: a few kilobytes of equal rows are harmless."""


class Readable(Protocol):
    """The interface of an upload: bytes in order, and none at the end."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes."""


Source = str | PathLike[str] | Readable
Destination = str | PathLike[str] | BinaryIO


def opened(file: Source | Destination, mode: str) -> AbstractContextManager[Any]:
    """Open a path and close it on exit; a stream is used as it is and left open."""
    if isinstance(file, str | PathLike):
        return Path(file).open(mode)
    return nullcontext(file)


class _PieceReader(io.RawIOBase):
    """A stream over pieces of bytes, without seeking, so that uploads can be read as they arrive."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def stream_of(pieces: Iterator[bytes]) -> BinaryIO:
    """Return the pieces as a stream whose reads are full until the end."""
    return io.BufferedReader(_PieceReader(pieces), PIECE_BYTES)


def pieces_of(stream: Readable) -> Iterator[bytes]:
    """Yield the stream's bytes piece by piece."""
    while piece := stream.read(PIECE_BYTES):
        yield piece


def unzipped_if_gzip(stream: Readable, *, max_bytes: int) -> Iterator[bytes]:
    """Yield the bytes of the stream, decompressed within limits if they are gzip."""
    raw = stream_of(pieces_of(stream))
    magic = raw.read(2)
    pieces = chain([magic], pieces_of(raw))
    if magic != b"\x1f\x8b":
        yield from pieces
        return
    packed = _Metered(pieces)
    try:
        unpacked = 0
        for piece in pieces_of(gzip.GzipFile(fileobj=stream_of(packed))):
            unpacked += len(piece)
            refuse_unpacked(unpacked, max_bytes)
            if unpacked > max(_ALWAYS_UNPACKED, MAX_RATIO * packed.size):
                raise TableError(
                    f"the gzip file unpacks to more than {MAX_RATIO} times its size; upload it plain, "
                    "or as Parquet"
                )
            yield piece
        return
    except (EOFError, zlib.error, gzip.BadGzipFile):
        pass
    raise TableError("the gzip file is truncated or damaged; compress and upload it again")


class _Metered:
    """An iterator over the same pieces that counts the bytes read so far."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self.size = 0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        piece = next(self._pieces)
        self.size += len(piece)
        return piece


def refuse_unpacked(size: int, most: int) -> None:
    """Refuse a table that unpacks to more than `most` bytes."""
    if size > most:
        raise TableError(
            f"the table unpacks to more than {most:,} bytes; upload fewer rows, or only the columns "
            "that are declared"
        )


def checked_utf8(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the same pieces, and refuse them if they are not UTF-8.

    Arrow checks cells too, but its handler of ragged rows would fail on invalid text first.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for piece in pieces:
            decoder.decode(piece)
            yield piece
        decoder.decode(b"", final=True)
        return
    except UnicodeDecodeError:
        pass
    raise TableError("the file is not UTF-8 text; save it as UTF-8")
