"""A seekable temporary file, for formats that are read from their end, such as Parquet.

It has no name, so it disappears with the process. Its content is encrypted with a key that never
leaves memory, so it cannot be read from the disk afterwards.
"""

import io
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

BLOCK_BYTES = 2**18
"""Plain bytes of a block, the unit of reading."""
_BUFFER_BYTES = 2**20
"""Bytes that a reader buffers: a few blocks."""
_TAG_BYTES = 16
_NONCE_BYTES = 12
"""AES-256-GCM: the sizes of its tag and its nonce."""


class _EncryptedFile(io.RawIOBase):
    """Blocks of AES-256-GCM, each under its own number, written once and then only read."""

    def __init__(self, file: BinaryIO, pieces: Iterable[bytes]) -> None:
        self._file = file
        self._cipher = AESGCM(secrets.token_bytes(32))
        self._position = 0
        self._size = self._fill(pieces)
        self._held: tuple[int, bytes] = (-1, b"")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError("negative position")
        self._position = base + offset
        return self._position

    def readinto(self, buffer: Any, /) -> int:
        if self._position >= self._size:
            return 0
        number, start = divmod(self._position, BLOCK_BYTES)
        found = self._block(number)[start : start + len(buffer)]
        buffer[: len(found)] = found
        self._position += len(found)
        return len(found)

    def _fill(self, pieces: Iterable[bytes]) -> int:
        rest, blocks = bytearray(), 0
        for piece in pieces:
            rest += piece
            while len(rest) >= BLOCK_BYTES:
                self._write(blocks, bytes(rest[:BLOCK_BYTES]))
                del rest[:BLOCK_BYTES]
                blocks += 1
        self._write(blocks, bytes(rest))
        return blocks * BLOCK_BYTES + len(rest)

    def _write(self, number: int, plain: bytes) -> None:
        self._file.write(self._cipher.encrypt(_nonce(number), plain, None))

    def _block(self, number: int) -> bytes:
        if self._held[0] != number:
            self._file.seek(number * (BLOCK_BYTES + _TAG_BYTES))
            sealed = self._file.read(BLOCK_BYTES + _TAG_BYTES)
            self._held = (number, self._cipher.decrypt(_nonce(number), sealed, None))
        return self._held[1]


@contextmanager
def encrypted_copy(pieces: Iterable[bytes], folder: Path) -> Iterator[BinaryIO]:
    """Copy all pieces to a seekable stream; its space is freed at the end."""
    with tempfile.TemporaryFile(dir=folder) as file:
        yield io.BufferedReader(_EncryptedFile(cast(BinaryIO, file), pieces), _BUFFER_BYTES)


def _nonce(number: int) -> bytes:
    return number.to_bytes(_NONCE_BYTES, "big")
