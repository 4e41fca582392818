"""The rows of an ingested dataset: encrypted chunks in the storage, and a count of them.

Each attempt has a prefix of its own, named by its epoch. Each chunk is encrypted for its position
(content, attempt, table, number), so that chunks cannot be exchanged, and the manifest records their
number, so that none can be left out.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from service.data.crypto import Unreadable, decrypt_pieces, encrypt_pieces
from service.data.datasets import object_prefix
from service.data.storage import Storage
from synth.table import Chunk, chunk_from_bytes, chunk_to_bytes

STORED_CHUNK_BYTES = 2**23
"""Smaller chunks are joined until they are about as large as this."""

_MANIFEST = "manifest"


@dataclass(frozen=True)
class ChunkStore:
    """The stored rows of one attempt to ingest a dataset."""

    storage: Storage
    dataset_id: UUID
    epoch: int
    content_hash: bytes
    data_key: bytes

    def write(self, table: str, chunks: Iterable[Chunk]) -> int:
        """Store the chunks of a table; returns the number of objects written."""
        written = 0
        for chunk in joined(chunks):
            self._put(f"{table}/{written}", chunk_to_bytes(chunk))
            written += 1
        return written

    def read(self, table: str, count: int) -> "StoredChunks":
        """The chunks of a table, to be read as often as needed."""
        return StoredChunks(self, table, count)

    def read_one(self, table: str, number: int) -> Chunk:
        """One chunk of a table; Unreadable if it is missing or was changed."""
        try:
            return chunk_from_bytes(self._get(f"{table}/{number}"))
        except FileNotFoundError:
            # If the manifest is missing too, the whole storage is unavailable, which is an outage.
            self.counts()
            raise Unreadable("a chunk of the rows is missing") from None

    def seal(self, counts: dict[str, int]) -> None:
        """Store the number of chunks of each table."""
        self._put(_MANIFEST, json.dumps(counts).encode())

    def counts(self) -> dict[str, int]:
        """The number of chunks of each table."""
        counts: dict[str, int] = json.loads(self._get(_MANIFEST))
        return counts

    def remove(self, table: str | None = None) -> None:
        """Remove a table, or everything of this attempt."""
        self.storage.delete_all(self._prefix if table is None else f"{self._prefix}/{table}")

    def remove_earlier(self) -> None:
        """Remove objects of earlier attempts; never of a later one, which may have succeeded."""
        root = f"{object_prefix(self.dataset_id)}/tables"
        for key in self.storage.keys(root):
            if int(key.removeprefix(f"{root}/").partition("/")[0]) < self.epoch:
                self.storage.delete(key)

    @property
    def _prefix(self) -> str:
        return f"{object_prefix(self.dataset_id)}/tables/{self.epoch}"

    def _purpose(self, name: str) -> str:
        return f"rows:{self.content_hash.hex()}:{self.epoch}:{name}"

    def _put(self, name: str, content: bytes) -> None:
        sealed = encrypt_pieces(self.data_key, [content], purpose=self._purpose(name))
        self.storage.write(f"{self._prefix}/{name}", sealed)

    def _get(self, name: str) -> bytes:
        stored = self.storage.read(f"{self._prefix}/{name}")
        return b"".join(decrypt_pieces(self.data_key, stored, purpose=self._purpose(name)))


@dataclass(frozen=True)
class StoredChunks:
    """The chunks of a stored table; each iteration reads and decrypts them again."""

    chunk_store: ChunkStore
    table: str
    count: int

    def __iter__(self) -> Iterator[Chunk]:
        """Yield one chunk at a time, so that only one is in memory."""
        for number in range(self.count):
            yield self.chunk_store.read_one(self.table, number)


def joined(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """The same rows in fewer chunks, each of about CHUNK_BYTES; empty ones are dropped."""
    waiting: list[Chunk] = []
    size = 0
    for chunk in chunks:
        added = bytes_of(chunk)
        if not added:
            continue
        waiting.append(chunk)
        size += added
        if size >= STORED_CHUNK_BYTES:
            yield concatenated(waiting)
            waiting, size = [], 0
    if waiting:
        yield concatenated(waiting)


def bytes_of(chunk: Chunk) -> int:
    """Size of the rows of a chunk in memory."""
    return sum(column.nbytes for column in chunk.values())


def concatenated(chunks: list[Chunk]) -> Chunk:
    """The rows of all chunks; there must be at least one."""
    if len(chunks) == 1:
        return chunks[0]
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}
