"""Limit the rows of each owner, for tables that do not fit into memory.

The rows are first stored in their original order, then read share by share. A share holds all rows
of some owners. Which rows of an owner are kept depends only on that owner's rows and a secret.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrim.spec.schema import Schema
from synth.table import Chunk, Table, TableError, limit_rows
from worker.chunks import ChunkStore

OWNERS_AT_ONCE = 2**23
"""Rows whose owners are compared at once; each takes about 50 bytes."""


def keep_bounded_rows(
    chunk_store: ChunkStore,
    name: str,
    chunks: Iterable[Chunk],
    *,
    schema: Schema,
    identifier: str,
    max_rows: int,
    group: str | None = None,
    check: Callable[[], None],
) -> int:
    """Store the chosen rows of a table; returns the number of chunks. Refuses rows without owner."""
    staged = f"{name}-staged"
    rows = 0

    def owned() -> Iterator[Chunk]:
        nonlocal rows
        for chunk in chunks:
            refuse_missing(chunk, identifier)
            rows += len(chunk[identifier])
            yield chunk

    stored = chunk_store.read(staged, chunk_store.write(staged, owned()))
    shares = rows // OWNERS_AT_ONCE + 1

    def chosen() -> Iterator[Chunk]:
        for share in range(shares):
            table = Table(schema, OwnersShare(stored, identifier, share, shares, check))
            key = choice_of_rows(chunk_store)
            yield from limit_rows(table, identifier, max_rows, key, group=group).chunks()

    written = chunk_store.write(name, chosen())
    chunk_store.remove(staged)
    return written


def choice_of_rows(chunk_store: ChunkStore) -> bytes:
    """The secret that decides which rows of an owner are kept."""
    return hashlib.blake2b(b"scrim-limit-rows-1", key=chunk_store.data_key).digest()


def refuse_missing(chunk: Chunk, identifier: str) -> None:
    """Refuse rows without an owner."""
    if not _words(chunk, identifier).any(axis=1).all():
        raise TableError(
            f"column {identifier!r} is empty in some rows; every row must name its owner"
        )


@dataclass(frozen=True)
class OwnersShare:
    """The rows of some of the owners."""

    chunks: Iterable[Chunk]
    identifier: str
    share: int
    shares: int
    check: Callable[[], None]

    def __iter__(self) -> Iterator[Chunk]:
        for chunk in self.chunks:
            self.check()
            # The second word: the comparison of owners divides by the first one.
            mask = _words(chunk, self.identifier)[:, 1] % np.uint64(self.shares) == self.share
            yield {name: column[mask] for name, column in chunk.items()}


def _words(chunk: Chunk, identifier: str) -> NDArray[np.uint64]:
    """The owners' digests, two words each; a missing one is all zero."""
    return np.ascontiguousarray(chunk[identifier]).view(np.uint64).reshape(-1, 2)
