"""Which rows of a person are kept, when each person may own only so many.

The choice looks at nothing but the person's own rows: each row is ordered by a keyed hash of its
content, and the first ones are kept. So a person who joins or leaves changes no one else's rows.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from synth.table.chunk import DIGEST, Array, Chunk

Words = npt.NDArray[np.uint64]

_ROWS_AT_ONCE = 2**22


def choose_rows(
    chunks: Iterable[Chunk], identifier: str, *, max_rows: int, key: bytes
) -> list[npt.NDArray[np.bool_]]:
    """For each chunk, which of its rows are among the first `max_rows` of their person."""
    # 24 bytes a row: 16 of the person's digest, 8 of the row's hash.
    marks = [
        np.column_stack([_words(chunk[identifier]), _content_hash(chunk, key)]) for chunk in chunks
    ]
    if not marks:
        return []
    kept = [np.zeros(len(rows), np.bool_) for rows in marks]
    # Sorting takes several times the memory of what it sorts, so a share of the people at a time.
    shares = sum(map(len, marks)) // _ROWS_AT_ONCE + 1
    for share in range(shares):
        chosen = [rows[:, 0] % np.uint64(shares) == share for rows in marks]
        rows = [rows[mask] for rows, mask in zip(marks, chosen, strict=True)]
        first = _first_of_each_person(np.concatenate(rows), max_rows)
        ends = np.cumsum([np.count_nonzero(mask) for mask in chosen])[:-1]
        for keep, mask, decision in zip(kept, chosen, np.split(first, ends), strict=True):
            keep[mask] = decision
    return kept


def _first_of_each_person(rows: Words, max_rows: int) -> npt.NDArray[np.bool_]:
    """Which rows are among the `max_rows` with the smallest hash of their person."""
    order = np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))
    people = rows[order, :2]
    is_new = np.ones(len(rows), np.bool_)
    is_new[1:] = (people[1:] != people[:-1]).any(axis=1)
    starts = np.flatnonzero(is_new)
    rank = np.arange(len(rows)) - np.repeat(starts, np.diff(starts, append=len(rows)))
    kept = np.empty(len(rows), np.bool_)
    kept[order] = rank < max_rows
    return kept


def _content_hash(chunk: Chunk, key: bytes) -> Words:
    """A keyed 64-bit hash of each row's content, the same wherever the row stands."""
    secret = blake2b(key).digest()
    length = len(next(iter(chunk.values())))
    hashes = np.zeros(length, np.uint64)
    # In the order of names, so that the order of columns does not matter either.
    for name in sorted(chunk):
        salt = np.frombuffer(blake2b(name.encode(), key=secret, digest_size=8).digest(), np.uint64)
        for word in _words(chunk[name]).T:
            hashes = _mix((hashes ^ word) + salt)
    return hashes


def _words(column: Array) -> Words:
    """The column as rows of 64-bit words: two for a digest, one for anything else."""
    if column.dtype == DIGEST:
        return np.ascontiguousarray(column).view(np.uint64).reshape(-1, 2)
    if column.dtype == np.float64:
        return np.ascontiguousarray(column).view(np.uint64).reshape(-1, 1)
    return column.astype(np.uint64).reshape(-1, 1)


def _mix(words: Any) -> Words:
    """The finaliser of splitmix64: every bit of the input moves every bit of the result."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(words ^ (words >> np.uint64(31)), np.uint64)
