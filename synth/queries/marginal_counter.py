"""Counting many marginals in one pass over the rows.

Marginals that share attributes are counted together: a few larger cross tables cover all of them,
and each marginal is a sum of one of those tables. Most of the time is spent on passes over the rows;
there is one per table instead of one per marginal.
"""

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from os import cpu_count
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

CELLS_PER_TABLE = 2**14
"""Limit of a table's cells: a table larger than the processor's fastest caches is slower to fill than
two small ones."""
ROWS_WORTH_A_THREAD = 100_000
"""Below this, starting threads costs more than they save."""


class TableShape(Protocol):
    """The attributes of a cross table, and their numbers of codes."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes, the last one varying fastest."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of codes of each."""

    @property
    def size(self) -> int:
        """Number of cells."""


@dataclass(frozen=True)
class CrossTable:
    """A cross table that is counted, and the marginals that are summed from it."""

    attributes: tuple[str, ...]
    sizes: tuple[int, ...]
    members: tuple[int, ...]

    def count(self, columns: Mapping[str, NDArray[np.int32]]) -> NDArray[np.int64]:
        """Counts of all cells, the last attribute varying fastest."""
        index = columns[self.attributes[0]]
        for name, size in zip(self.attributes[1:], self.sizes[1:], strict=True):
            index = index * np.int32(size)
            index += columns[name]
        return np.bincount(index, minlength=math.prod(self.sizes))


class MarginalCounter:
    """Counts marginals, chunk by chunk."""

    def __init__(self, marginals: Sequence[TableShape]) -> None:
        self._marginals = marginals
        self._tables = covering_tables(tuple(marginals))
        self._counts = [np.zeros(math.prod(t.sizes), dtype=np.int64) for t in self._tables]

    def add(self, codes: Mapping[str, NDArray[Any]]) -> None:
        """Count the rows of one chunk."""
        needed = {name for table in self._tables for name in table.attributes}
        # Cell numbers of every table fit in 32 bits, which are twice as fast as 64.
        columns = {name: codes[name].astype(np.int32) for name in needed}
        rows = len(next(iter(columns.values())))
        if rows < ROWS_WORTH_A_THREAD:
            counts = [table.count(columns) for table in self._tables]
        else:
            with ThreadPoolExecutor(cpu_count()) as pool:
                counts = list(pool.map(lambda table: table.count(columns), self._tables))
        for total, counted in zip(self._counts, counts, strict=True):
            total += counted

    def totals(self) -> list[NDArray[np.int64]]:
        """The counts of each marginal."""
        found: dict[int, NDArray[np.int64]] = {}
        for table, counts in zip(self._tables, self._counts, strict=True):
            shaped = counts.reshape(table.sizes)
            for member in table.members:
                wanted = self._marginals[member].attributes
                other = tuple(i for i, name in enumerate(table.attributes) if name not in wanted)
                kept = [name for name in table.attributes if name in wanted]
                # A table has its own order of attributes, a marginal has the domain's.
                order = [kept.index(name) for name in wanted]
                found[member] = shaped.sum(axis=other).transpose(order).ravel()
        return [found[i] for i in range(len(self._marginals))]


@lru_cache(maxsize=16)
def covering_tables(marginals: tuple[TableShape, ...]) -> list[CrossTable]:
    """Cross tables of bounded size such that each marginal is a sum of one of them.

    Greedy: start from the largest marginal that is not covered, and add the attribute that completes
    the most others (small attributes first), as long as the table stays small.
    """
    size_of = {n: s for m in marginals for n, s in zip(m.attributes, m.sizes, strict=True)}
    names, sizes = list(size_of), np.array(list(size_of.values()), dtype=np.float64)
    # Floats, so that counting shared attributes is a matrix product.
    uses = np.array([[name in m.attributes for name in names] for m in marginals], dtype=np.float32)
    order = uses.sum(axis=1)
    uncovered = np.ones(len(marginals), dtype=bool)
    tables = []
    for start in sorted(range(len(marginals)), key=lambda i: -marginals[i].size):
        if not uncovered[start]:
            continue
        chosen, cells = uses[start].copy(), marginals[start].size
        while True:
            missing_one = uncovered & (uses @ chosen == order - 1)
            gain = missing_one @ uses / np.sqrt(sizes)
            gain[(chosen > 0) | (cells * sizes > CELLS_PER_TABLE)] = 0
            best = int(gain.argmax())
            if gain[best] == 0:
                break
            chosen[best], cells = 1, cells * int(sizes[best])
        covered = uncovered & (uses @ chosen == order)
        uncovered &= ~covered
        attributes = tuple(name for name, kept in zip(names, chosen, strict=True) if kept)
        tables.append(
            CrossTable(
                attributes,
                tuple(size_of[name] for name in attributes),
                tuple(int(i) for i in np.flatnonzero(covered)),
            )
        )
    return tables
