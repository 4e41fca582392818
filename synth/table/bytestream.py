"""The bytes of a file or upload, piece by piece: unzipped, checked, and never all in memory."""

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from synth.table.chunk import TableError

PIECE_BYTES = 2**20


class Readable(Protocol):
    """What an upload must offer: bytes, in order, and none at the end."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes."""


Source = str | PathLike[str] | Readable
Destination = str | PathLike[str] | BinaryIO


def opened(file: Source | Destination, mode: str) -> AbstractContextManager[Any]:
    """The file, opened and closed here if it is a path, and left open if it is a stream."""
    if isinstance(file, str | PathLike):
        return Path(file).open(mode)
    return nullcontext(file)


class _PieceReader(io.RawIOBase):
    """A stream over pieces of bytes; it needs no seeking, so uploads can be read as they arrive."""

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
    """The pieces as a stream, which fills every read up to the end."""
    return io.BufferedReader(_PieceReader(pieces), PIECE_BYTES)


def pieces_of(stream: Readable) -> Iterator[bytes]:
    """The stream's bytes, as they come."""
    while piece := stream.read(PIECE_BYTES):
        yield piece


def unzipped_if_gzip(stream: Readable) -> Iterator[bytes]:
    """The bytes of the stream, decompressed where they begin as gzip does."""
    raw = stream_of(pieces_of(stream))
    magic = raw.read(2)
    pieces = chain([magic], pieces_of(raw))
    if magic != b"\x1f\x8b":
        yield from pieces
        return
    try:
        yield from pieces_of(gzip.GzipFile(fileobj=stream_of(pieces)))
        return
    except (EOFError, zlib.error, gzip.BadGzipFile):
        pass
    raise TableError("the gzip file is truncated or damaged; compress and upload it again")


def checked_utf8(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same pieces, which must be UTF-8 together.

    Arrow would check cells too, but not before its handler of ragged rows has choked on them.
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
