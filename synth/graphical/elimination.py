"""Cross tables of attributes that no single clique contains, by eliminating all others.

The part of the tree behind an edge affects a query only through the edge's separator: as the
distribution of the query's attributes there, given the separator. Such tables are shared by all
queries that need them.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from string import ascii_letters

import torch

from synth.graphical.junction_tree import JunctionTree
from synth.graphical.propagation import Beliefs, sum_to
from synth.planning.memory import ELIMINATED_ENTRIES
from synth.planning.triangulation import Attributes

SMALLEST_PRODUCT = 1e-300
"""Lower bound of divisors: avoids division by zero for empty cells."""

Table = tuple[Attributes, torch.Tensor]


class TableTooLarge(Exception):
    """An intermediate table would exceed the limit of entries."""


class Elimination:
    """Answers to queries across cliques of one model."""

    def __init__(
        self,
        tree: JunctionTree,
        tables: Sequence[torch.Tensor],
        separators: Sequence[torch.Tensor],
    ) -> None:
        self._tree = tree
        self._tables = tables
        self._separators = separators
        self._limit = max(ELIMINATED_ENTRIES, *(table.numel() for table in tables))
        self._messages: dict[tuple[int, int, frozenset[str]], Table] = {}
        self._sums: dict[tuple[int, Attributes], torch.Tensor] = {}
        self._remembered = 0
        self._entries: dict[tuple[int, int | None, frozenset[str]], int] = {}

    @classmethod
    def of(cls, beliefs: Beliefs) -> "Elimination":
        """Answer from the distributions of a tree's cliques."""
        return cls(beliefs.tree, beliefs.tables, beliefs.separator_tables)

    def marginal(self, query: Attributes) -> torch.Tensor:
        """The cross table of some attributes."""
        wanted = frozenset(query)
        root = min(
            range(len(self._tables)), key=lambda i: self._entries_on_the_way(i, None, wanted)
        )
        try:
            names, table = self._from(root, None, wanted)
        except TableTooLarge:
            return self._in_slices(query)
        return table.permute([names.index(name) for name in query])

    def _entries_on_the_way(self, clique: int, towards: int | None, query: frozenset[str]) -> int:
        """The total size of all messages if this clique is the root."""
        key = clique, towards, query
        if key not in self._entries:
            entries = 0
            for neighbour, beyond in self._beyond(clique, towards, query):
                _, separator = self._separator(clique, neighbour)
                entries += separator.numel() * self._cells(beyond)
                entries += self._entries_on_the_way(neighbour, clique, beyond)
            self._entries[key] = entries
        return self._entries[key]

    def _beyond(
        self, clique: int, towards: int | None, query: frozenset[str]
    ) -> list[tuple[int, frozenset[str]]]:
        """Neighbours behind which there are attributes of a query that the clique itself lacks."""
        lacking = query.difference(self._tree.cliques[clique])
        found = [(i, lacking & self._behind[clique, i]) for i in self._neighbours[clique]]
        return [(i, beyond) for i, beyond in found if beyond and i != towards]

    def _in_slices(self, query: Attributes) -> torch.Tensor:
        """Compute the table one code of the query's widest attribute at a time."""
        sizes = self._sizes
        name = max(query, key=lambda name: sizes[name])
        slices = [self._narrowed(name, code).marginal(query) for code in range(sizes[name])]
        return torch.cat(slices, dim=query.index(name))

    def _narrowed(self, name: str, code: int) -> "Elimination":
        tree = self._tree

        def narrow(attributes: Attributes, table: torch.Tensor) -> torch.Tensor:
            return _narrow((attributes, table), name, code, 1)[1]

        return Elimination(
            tree,
            [narrow(*each) for each in zip(tree.cliques, self._tables, strict=True)],
            [narrow(*each) for each in zip(tree.separators, self._separators, strict=True)],
        )

    def _from(self, clique: int, towards: int | None, query: frozenset[str]) -> Table:
        """The joint table of the query's attributes behind an edge and of the edge's separator.

        Without an edge, the table of the query's attributes.
        """
        attributes = self._tree.cliques[clique]
        messages = [
            self._message(neighbour, clique, beyond)
            for neighbour, beyond in self._beyond(clique, towards, query)
        ]
        kept = set() if towards is None else set(self._separator(clique, towards)[0])
        wanted = kept | query
        needed = wanted.union(*(names for names, _ in messages))
        table = self._summed(clique, tuple(name for name in attributes if name in needed))
        if towards is not None and self._cells(wanted) > self._limit:
            raise TableTooLarge
        messages.sort(key=lambda message: message[1].numel())
        return self._combine(table, messages, wanted)

    def _summed(self, clique: int, names: Attributes) -> Table:
        """The table of some attributes of a clique."""
        key = clique, names
        if key in self._sums:
            return names, self._sums[key]
        table = sum_to(self._tables[clique], self._tree.cliques[clique], names)
        if self._keep(table):
            self._sums[key] = table
        return names, table

    def _keep(self, table: torch.Tensor) -> bool:
        """Whether there is room to store a table. The first ones stay: most queries share them."""
        if self._remembered + table.numel() > self._limit:
            return False
        self._remembered += table.numel()
        return True

    def _combine(self, table: Table, messages: Sequence[Table], wanted: Collection[str]) -> Table:
        """Multiply a table by messages, and keep what is wanted; a large product, part by part."""
        if not messages:
            return table
        first, *rest = messages
        later = set(wanted).union(*(names for names, _ in rest))
        sizes = _sizes_of(table) | _sizes_of(first)
        kept = {name: size for name, size in sizes.items() if name in later}
        widest = max((name for name in kept if name in wanted), key=sizes.__getitem__, default="")
        cells = math.prod(kept.values())
        if cells <= self._limit or sizes.get(widest, 1) == 1:
            return self._combine(self._multiply(table, first, later), rest, wanted)
        length = max(1, sizes[widest] * self._limit // cells)
        parts = [
            self._combine(
                _narrow(table, widest, start, length),
                [_narrow(message, widest, start, length) for message in messages],
                wanted,
            )
            for start in range(0, sizes[widest], length)
        ]
        names = parts[0][0]
        return names, torch.cat([values for _, values in parts], dim=names.index(widest))

    def _message(self, clique: int, towards: int, query: frozenset[str]) -> Table:
        key = clique, towards, query
        if key in self._messages:
            return self._messages[key]
        kept, shares = self._separator(clique, towards)
        names, table = self._from(clique, towards, query)
        axes = [size if name in kept else 1 for name, size in zip(names, table.shape, strict=True)]
        in_order = [kept.index(name) for name in names if name in kept]
        message = names, table / shares.permute(in_order).reshape(axes).clamp_min(SMALLEST_PRODUCT)
        if self._keep(table):
            self._messages[key] = message
        return message

    def _multiply(self, table: Table, message: Table, wanted: Collection[str]) -> Table:
        """Multiply two tables and sum over the attributes that are no longer needed."""
        (names, left), (others, right) = table, message
        label = dict(zip(dict.fromkeys((*names, *others)), ascii_letters, strict=False))
        result = tuple(name for name in label if name in wanted)
        one, other, both = ("".join(map(label.__getitem__, n)) for n in (names, others, result))
        return result, torch.einsum(f"{one},{other}->{both}", left, right)

    def _cells(self, attributes: Iterable[str]) -> int:
        return math.prod(self._sizes[name] for name in attributes)

    def _separator(self, one: int, other: int) -> Table:
        child = max(one, other)
        return self._tree.separators[child - 1], self._separators[child - 1]

    @cached_property
    def _sizes(self) -> dict[str, int]:
        pairs = zip(self._tree.cliques, self._tables, strict=True)
        return {n: s for names, table in pairs for n, s in zip(names, table.shape, strict=True)}

    @cached_property
    def _neighbours(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self._tree.cliques]
        for child in range(1, len(found)):
            found[child].append(self._tree.parent(child))
            found[self._tree.parent(child)].append(child)
        return found

    @cached_property
    def _behind(self) -> dict[tuple[int, int], frozenset[str]]:
        """The attributes on the far side of each directed edge."""
        cliques = self._tree.cliques
        found: dict[tuple[int, int], frozenset[str]] = {}
        for child in reversed(range(1, len(cliques))):
            parent = self._tree.parent(child)
            below = [found[child, other] for other in self._neighbours[child] if other != parent]
            found[parent, child] = frozenset(cliques[child]).union(*below)
        for child in range(1, len(cliques)):
            parent = self._tree.parent(child)
            above = [found[parent, other] for other in self._neighbours[parent] if other != child]
            found[child, parent] = frozenset(cliques[parent]).union(*above)
        return found


def _narrow(table: Table, name: str, start: int, length: int) -> Table:
    """The part of a table with some codes of an attribute; the whole table if it lacks the attribute."""
    names, values = table
    if name not in names:
        return table
    axis = names.index(name)
    return names, values.narrow(axis, start, min(length, values.shape[axis] - start))


def _sizes_of(table: Table) -> dict[str, int]:
    return dict(zip(table[0], table[1].shape, strict=True))
