"""The choice of a person's rows, when each person may own at most `max_rows`.

The choice depends only on the person's own rows, so adding or removing a person does not change the
rows of others. The rows are sorted by keyed hashes, and the first ones are kept:

- In a single table, they are sorted by a hash of each row's content.
- If rows belong to groups, they are sorted first by a hash of the group's key; the content only orders
  rows of the same group. So the number of rows that a person keeps in each group does not depend on any
  protected value, nor on the person's identifier (docs/privacy.md, section 3.1).
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from synth.table.chunk import DIGEST, Array, Chunk

Words = npt.NDArray[np.uint64]

_RANKED_AT_ONCE = 2**22
"""Rows that are sorted at a time."""


def choose_rows(
    chunks: Iterable[Chunk], identifier: str, *, max_rows: int, key: bytes, group: str | None = None
) -> list[npt.NDArray[np.bool_]]:
    """For each chunk, a mask of the rows that are among the first `max_rows` of their person.

    `group` names the column with the key of each row's group, if rows belong to groups.
    """
    marks = [_marks(chunk, identifier, key, group) for chunk in chunks]
    if not marks:
        return []
    kept = [np.zeros(len(rows), np.bool_) for rows in marks]
    # Sorting takes several times the memory of its input, so it is done for a share of the people at a time.
    shares = sum(map(len, marks)) // _RANKED_AT_ONCE + 1
    for share in range(shares):
        chosen = [rows[:, 0] % np.uint64(shares) == share for rows in marks]
        rows = [rows[mask] for rows, mask in zip(marks, chosen, strict=True)]
        first = _first_of_each_person(np.concatenate(rows), max_rows)
        ends = np.cumsum([np.count_nonzero(mask) for mask in chosen])[:-1]
        for keep, mask, decision in zip(kept, chosen, np.split(first, ends), strict=True):
            keep[mask] = decision
    return kept


def _marks(chunk: Chunk, identifier: str, key: bytes, group: str | None) -> Words:
    """Five or three words a row: the person's digest (two), the group's rank (two), the content's hash."""
    ranks = [] if group is None else [_group_rank(chunk[group], key)]
    return np.column_stack([_words(chunk[identifier]), *ranks, _content_hash(chunk, key)])


def _first_of_each_person(rows: Words, max_rows: int) -> npt.NDArray[np.bool_]:
    """A mask of the rows that are among the first `max_rows` of their person, in the order of words."""
    order = np.lexsort(rows.T[::-1])
    people = rows[order, :2]
    is_new = np.ones(len(rows), np.bool_)
    is_new[1:] = (people[1:] != people[:-1]).any(axis=1)
    starts = np.flatnonzero(is_new)
    rank = np.arange(len(rows)) - np.repeat(starts, np.diff(starts, append=len(rows)))
    kept = np.empty(len(rows), np.bool_)
    kept[order] = rank < max_rows
    return kept


def _content_hash(chunk: Chunk, key: bytes) -> Words:
    """A keyed 64-bit hash of each row's content, independent of the row's position."""
    secret = blake2b(key).digest()
    length = len(next(iter(chunk.values())))
    hashes = np.zeros(length, np.uint64)
    # Sorted by name, so that the order of columns does not matter either.
    for name in sorted(chunk):
        salt = np.frombuffer(blake2b(name.encode(), key=secret, digest_size=8).digest(), np.uint64)
        for word in _words(chunk[name]).T:
            hashes = _mix((hashes ^ word) + salt)
    return hashes


def _group_rank(keys: Array, key: bytes) -> Words:
    """A keyed rank of each row's group. Groups with different keys have different ranks.

    Each step is invertible, so this is a permutation of all digests. Without this, the content of rows
    would break a tie between two groups.
    """
    salt = np.frombuffer(
        blake2b(b"group", key=blake2b(key).digest(), digest_size=8).digest(), np.uint64
    )
    first, second = _words(keys).T
    first = _mix(first + salt)
    return np.column_stack([first, _mix((second ^ first) + salt)])


def _words(column: Array) -> Words:
    """The column as rows of 64-bit words: two for a digest, one for anything else."""
    if column.dtype == DIGEST:
        return np.ascontiguousarray(column).view(np.uint64).reshape(-1, 2)
    if column.dtype == np.float64:
        return np.ascontiguousarray(column).view(np.uint64).reshape(-1, 1)
    return column.astype(np.uint64).reshape(-1, 1)


def _mix(words: Any) -> Words:
    """The finaliser of splitmix64: every bit of the input affects every bit of the result."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(words ^ (words >> np.uint64(31)), np.uint64)
