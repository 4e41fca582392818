"""Stored groups and individuals become one stored table of linked rows, in bounded memory.

Both tables are read share by share, where a share holds some groups with all their individuals. The
rows of a group end up side by side, in one chunk.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, pairwise

import numpy as np

from scrim.spec.schema import Schema
from scrim.spec.two_level import TwoLevelSchema
from synth.table import Chunk, Table, limit_rows
from synth.table.encoding import codec_of
from synth.table.linking import link, starts_of_groups
from worker import chunks
from worker.chunks import ChunkStore, bytes_of, concatenated
from worker.crash import crash_at
from worker.people import OwnersShare, choice_of_rows

BYTES_AT_ONCE = 2**27
"""Bytes of linked rows that are built at once; building them takes about three times that memory."""


def store_linked(
    chunk_store: ChunkStore,
    schema: TwoLevelSchema,
    counts: dict[str, int],
    check: Callable[[], None],
) -> int:
    """Store the linked rows of the tables; return the number of chunks written."""
    groups, individuals = (
        chunk_store.read(name, counts[name]) for name in ("groups", "individuals")
    )
    key, own_key, alone = (
        schema.groups.key,
        schema.individuals.group_key,
        schema.table("individuals"),
    )
    shares = _linked_bytes(schema, chain(groups, individuals)) // BYTES_AT_ONCE + 1

    def linked() -> Iterator[Chunk]:
        for share in range(shares):
            some = OwnersShare(groups, key, share, shares, check)
            theirs = Table(alone, OwnersShare(individuals, own_key, share, shares, check))
            kept = limit_rows(theirs, own_key, schema.max_group_size, choice_of_rows(chunk_store))
            rows = link(_whole(schema.table("groups"), some), _whole(alone, kept.chunks()), schema)
            yield from _cut(rows, schema.linked.key)
            crash_at("during-linking")

    return chunk_store.write("linked", linked())


def _linked_bytes(schema: TwoLevelSchema, stored: Iterable[Chunk]) -> int:
    """Upper bound on the memory of the linked rows: a linked row has the columns of both tables."""
    rows = sum(len(next(iter(chunk.values()))) for chunk in stored)
    return rows * sum(codec_of(column).dtype.itemsize for column in schema.linked.columns)


def _whole(schema: Schema, parts: Iterable[Chunk]) -> Chunk:
    """All rows in one chunk, which may be empty."""
    empty = {column.name: np.empty(0, codec_of(column).dtype) for column in schema.columns}
    return concatenated([empty, *parts])


def _cut(rows: Chunk, key: str) -> Iterator[Chunk]:
    """The same rows in chunks of about the usual size, without splitting a group."""
    starts = starts_of_groups(rows[key])
    length = len(rows[key])
    # At least a full chunk, so that it is not joined with the next one.
    least = chunks.STORED_CHUNK_BYTES * length // max(1, bytes_of(rows)) + 1
    # For each desired cut, the first group that starts there or later; cuts may coincide.
    found = np.searchsorted(starts, np.arange(least, length, least))
    ends = np.append(starts, length)[found]
    for start, end in pairwise(np.unique([0, *ends, length]).tolist()):
        yield {name: column[start:end] for name, column in rows.items()}
