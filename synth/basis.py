"""The basis of an answer: what was measured, what the model infers, or no relation at all.

It follows from which queries were measured, which is public, and never from counts.

- `measured`: the query was measured, or it is a sum of cells of one measured table.
- `model`: the model infers it from measurements of other queries.
- `independent`: no chain of measured queries connects all of its columns, so nothing that was measured
  says how they are related.

A mechanism that measures nothing, such as a game, fits all columns to its draws: everything is `model`.
Public rows connect all of their columns.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

from scrim.spec.columns import LabelledColumn
from scrim.spec.schema import Schema
from scrim.spec.workload import TreeBlock
from synth.queries import (
    ConjunctionQueries,
    GroupSizeQueries,
    HierarchicalQueries,
    Marginal,
    MarginalPart,
    QueryBlock,
    Single,
    TreeQueries,
)
from synth.queries.marginal import joined

Basis = Literal["measured", "model", "independent"]
Names = tuple[str, ...]

CODES = "codes"
"""The kind of table with one cell for each combination of codes."""


@dataclass(frozen=True)
class MeasuredTable:
    """A table that was measured as a whole; sums over its columns are known as well."""

    kind: str
    """Tables of one kind have the same cells along the same column."""
    columns: Names


@dataclass(frozen=True)
class MeasuredQueries:
    """All queries that were measured for a release, by public names."""

    tables: tuple[MeasuredTable, ...]
    singles: frozenset[str]
    """The names of single queries."""
    connected: tuple[Names, ...]
    """Sets of columns that chains of measured queries connect."""

    @classmethod
    def of(
        cls, queries: Iterable[QueryBlock | Single], *, public_columns: Sequence[str] = ()
    ) -> Self:
        """List what was measured; `public_columns` are those of public rows that the model uses."""
        measured = list(dict.fromkeys(queries))
        tables = (_table(query) for query in measured if isinstance(query, QueryBlock))
        together = {names for query in measured for names in _columns_together(query)}
        public = [tuple(public_columns)] if together else []
        return cls(
            tables=tuple(dict.fromkeys(tables)),
            singles=frozenset(query.name for query in measured if isinstance(query, Single)),
            connected=tuple(_connected([*sorted(together), *public])),
        )

    def bases(self, block: QueryBlock, schema: Schema) -> list[Basis]:
        """The basis of each query of a block."""
        if isinstance(block, ConjunctionQueries) and not self._contains(block.name, ()):
            found = self._of_conjunctions(block, schema)
        else:
            is_measured = self._covers(block, schema)
            found = [self._basis(block.attributes, is_measured=is_measured)] * block.size
        if not self.singles:
            return found
        return [
            "measured" if f"{block.name}[{index}]" in self.singles else each
            for index, each in enumerate(found)
        ]

    def to_plain(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "tables": [[table.kind, list(table.columns)] for table in self.tables],
            "singles": sorted(self.singles),
            "connected": [list(names) for names in self.connected],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Read the output of `to_plain`."""
        return cls(
            tables=tuple(MeasuredTable(kind, tuple(names)) for kind, names in plain["tables"]),
            singles=frozenset(plain["singles"]),
            connected=tuple(tuple(names) for names in plain["connected"]),
        )

    def _of_conjunctions(self, block: ConjunctionQueries, schema: Schema) -> list[Basis]:
        """Conjunctions of whole bins are sums of cells of a table with their columns."""
        has_bins = block.block.unaligned(schema) is None
        known: dict[Names, Basis] = {}
        found = []
        for conjunction in block.conjunctions:
            names = tuple(condition.column for condition in conjunction)
            if names not in known:
                is_measured = has_bins and self._contains(CODES, names)
                known[names] = self._basis(names, is_measured=is_measured)
            found.append(known[names])
        return found

    def _basis(self, names: Names, *, is_measured: bool) -> Basis:
        if is_measured:
            return "measured"
        if not self.connected or len(names) < 2:
            return "model"
        places = {self._component.get(name, name) for name in names}
        return "model" if len(places) == 1 else "independent"

    def _covers(self, block: QueryBlock, schema: Schema) -> bool:
        """Whether the cells of a block are sums of cells of one measured table."""
        if isinstance(block, TreeQueries):
            tree = TreeBlock(block.attributes, block.levels)
            has_bins = tree.unaligned(schema) is None
            return (has_bins and self._contains(CODES, block.attributes)) or any(
                self._contains(_tree(levels), block.attributes)
                for levels in self._levels
                if levels >= block.levels
            )
        table = _table(block)
        if self._contains(table.kind, table.columns):
            return True
        # The categories of a tree are those of the table.
        columns = [schema.attribute(name) for name in block.attributes]
        are_categories = all(isinstance(column, LabelledColumn) for column in columns)
        return (
            table.kind == CODES
            and are_categories
            and any(self._contains(_tree(levels), table.columns) for levels in self._levels)
        )

    def _contains(self, kind: str, names: Names) -> bool:
        """Whether a measured table of that kind has these columns."""
        bits = self._of_kind.get(kind, 0)
        for name in names:
            bits &= self._holding.get((kind, name), 0)
        return bits != 0

    @cached_property
    def _of_kind(self) -> dict[str, int]:
        """One bit for each table of a kind."""
        found: dict[str, int] = {}
        for position, table in enumerate(self.tables):
            found[table.kind] = found.get(table.kind, 0) | 1 << position
        return found

    @cached_property
    def _holding(self) -> dict[tuple[str, str], int]:
        """One bit for each table of a kind that has a column."""
        found: dict[tuple[str, str], int] = {}
        for position, table in enumerate(self.tables):
            for name in table.columns:
                key = table.kind, name
                found[key] = found.get(key, 0) | 1 << position
        return found

    @cached_property
    def _levels(self) -> list[int]:
        """The levels of the measured trees."""
        kinds = (kind.partition(" ") for kind in self._of_kind)
        return [int(levels) for kind, _, levels in kinds if kind == "tree"]

    @cached_property
    def _component(self) -> dict[str, int]:
        """The number of the set of connected columns that a column is in."""
        return {name: i for i, names in enumerate(self.connected) for name in names}


def _table(block: QueryBlock) -> MeasuredTable:
    """The table that a block consists of; other blocks are a kind of their own, without columns."""
    match block:
        case Marginal() | MarginalPart():
            return MeasuredTable(CODES, block.attributes)
        case TreeQueries():
            return MeasuredTable(_tree(block.levels), block.attributes)
        case HierarchicalQueries(level="individual"):
            return MeasuredTable("individuals", block.attributes)
        case HierarchicalQueries():
            # A group is in the cells of several individuals, so counts of groups only add up over the
            # columns of groups.
            kind = f"groups with {joined(block.of_individuals)}"
            return MeasuredTable(kind, block.of_groups)
        case GroupSizeQueries():
            return MeasuredTable("sizes", ())
        case _:
            return MeasuredTable(block.name, ())


def _tree(levels: int) -> str:
    return f"tree {levels}"


def _columns_together(query: QueryBlock | Single) -> Iterator[Names]:
    """The sets of columns that a measured query relates to each other."""
    block = query.block if isinstance(query, Single) else query
    if isinstance(block, ConjunctionQueries):
        asked = block.conjunctions
        for conjunction in [asked[query.index]] if isinstance(query, Single) else asked:
            yield tuple(condition.column for condition in conjunction)
    elif block.attributes:
        yield block.attributes


def _connected(sets: Iterable[Names]) -> Iterator[Names]:
    """Merge sets that share a column, until no two do."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            parent[name] = name = parent[parent[name]]
        return name

    for names in sets:
        for name in names:
            parent[root(name)] = root(names[0])
    merged: dict[str, list[str]] = {}
    for name in parent:
        merged.setdefault(root(name), []).append(name)
    return (tuple(names) for names in merged.values())
