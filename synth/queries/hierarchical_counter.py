"""Counting tables of linked rows in one pass.

In tables of groups, a group counts once per cell, however many of its individuals are in it. The rows
that count are the same for all tables with the same attributes of individuals, so these tables are
counted together, as marginals of those rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from scrim.spec.two_level import LinkedSchema
from scrim.spec.workload.hierarchical import Level
from synth.queries.marginal import Marginal
from synth.queries.marginal_counter import MarginalCounter

Counts = NDArray[np.int64]
Codes = Mapping[str, NDArray[Any]]


class TableOfLinkedRows(Protocol):
    """What counting reads of a table's queries."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """The columns of the table."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of codes of each."""

    @property
    def of_individuals(self) -> tuple[str, ...]:
        """Those that describe individuals."""

    @property
    def level(self) -> Level:
        """Whether groups or individuals are counted."""

    @property
    def schema(self) -> LinkedSchema:
        """The schema of the linked rows."""


class HierarchicalCounter:
    """Counts tables, chunk by chunk."""

    def __init__(self, blocks: Sequence[TableOfLinkedRows]) -> None:
        self._blocks = blocks
        positions: dict[CountedRows, list[int]] = {}
        for position, block in enumerate(blocks):
            positions.setdefault(CountedRows.of(block), []).append(position)
        self._positions = positions
        self._counters = {
            rows: MarginalCounter([_marginal(blocks[i]) for i in some])
            for rows, some in positions.items()
        }

    def add(self, columns: Codes) -> None:
        """Count the groups of one chunk."""
        for rows, counter in self._counters.items():
            names = {name for i in self._positions[rows] for name in self._blocks[i].attributes}
            counter.add(rows.take(columns, names))

    def totals(self) -> list[Counts]:
        """The counts of each table."""
        found: dict[int, Counts] = {}
        for rows, positions in self._positions.items():
            found |= zip(positions, self._counters[rows].totals(), strict=True)
        return [found[position] for position in range(len(self._blocks))]


class GroupSizeCounter:
    """Counts the groups of each size, chunk by chunk."""

    def __init__(self, key: str, *, sizes: int, blocks: int) -> None:
        self._key = key
        self._counts = np.zeros(sizes, np.int64)
        self._blocks = blocks

    def add(self, columns: Codes) -> None:
        """Count the groups of one chunk."""
        sizes = np.diff(columns[self._key])
        self._counts += np.bincount(sizes - 1, minlength=len(self._counts))

    def totals(self) -> list[Counts]:
        """The counts of each block; all blocks have the same."""
        return [self._counts] * self._blocks


@dataclass(frozen=True)
class CountedRows:
    """The linked rows that tables count: all, or one for each kind of individual in a group."""

    key: str
    kind_attributes: tuple[tuple[str, int], ...] | None
    """These attributes and their sizes define a kind of individual. None if all rows count."""

    @classmethod
    def of(cls, block: TableOfLinkedRows) -> "CountedRows":
        """The rows that a table counts."""
        sizes = block.schema.sizes
        own = tuple((name, sizes[name]) for name in block.of_individuals)
        return cls(block.schema.key, None if block.level == "individual" else own)

    def take(self, columns: Codes, names: set[str]) -> Codes:
        """Some attributes of these rows, and a constant key."""
        edges = columns[self.key]
        rows = slice(None) if self.kind_attributes is None else self._distinct(columns)
        constant = np.zeros(edges[-1], np.int8)[rows]
        return {self.key: constant, **{name: columns[name][rows] for name in names}}

    def _distinct(self, columns: Codes) -> NDArray[np.int64]:
        """One row of each group for each kind of individual that it contains."""
        assert self.kind_attributes is not None
        edges = columns[self.key]
        if not self.kind_attributes:
            return np.asarray(edges[:-1])
        kinds = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
        for name, size in self.kind_attributes:
            kinds = kinds * size + columns[name]
        order = np.argsort(kinds, kind="stable")
        is_first = np.ones(len(kinds), np.bool_)
        is_first[1:] = kinds[order[1:]] != kinds[order[:-1]]
        return order[is_first]


def _marginal(block: TableOfLinkedRows) -> Marginal:
    """The table as a marginal of the rows that it counts; without attributes it has one cell."""
    if not block.attributes:
        return Marginal((block.schema.key,), (1,))
    return Marginal(block.attributes, block.sizes)
