"""Change as few columns of a group's individuals as rules about groups need."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import product

import numpy as np

from scrim.spec.rules.rule_set import Count
from scrim.spec.rules.search import merged
from synth.rules.choice import RowChoice
from synth.rules.repair import Repair
from synth.rules.row_rules import Flags, Numbers, RowRules
from synth.rules.valid import Change, ValidTable, smallest_changes

Kind = tuple[bool, ...]
"""Which of the rules about groups count an individual."""
Ways = tuple[int, list[Change]]
"""The number of columns that change, and the ways to change them."""


class GroupRepair:
    """Changes individuals such that a group has the numbers of individuals that rules ask for.

    The columns and the size of the group stay. With k rules, every individual gets one of 2^k kinds, such
    that the counts are right and the number of changed columns is smallest (dynamic programming).
    """

    def __init__(self, rows: RowRules, choice: RowChoice) -> None:
        self._rows = rows
        self._choice = choice
        self._repair = Repair(rows)
        self._counts = rows.rules.counts
        self._known: dict[tuple[int, ...], dict[Kind, Ways]] = {}

    @cached_property
    def _table(self) -> ValidTable:
        return ValidTable(merged(self._rows.rules))

    @cached_property
    def _valid(self) -> dict[Kind, Flags]:
        """The valid combinations of each kind."""
        inside = [self._table.inside(count) for count in self._counts]
        found: dict[Kind, Flags] = {}
        for kind in product((False, True), repeat=len(inside)):
            valid = self._table.table.copy()
            for is_counted, mine in zip(kind, inside, strict=True):
                valid &= mine if is_counted else ~mine
            found[kind] = valid
        return found

    def change(self, numbers: Numbers, group: slice) -> None:
        """Change the individuals of a group in place, if that is possible."""
        if not self._counts:
            return
        mine = {name: numbers[name][group] for name in self._table.names}
        parts = self._rows.parts(mine)
        people = np.stack([parts[name] for name in self._table.names], axis=1).tolist()
        kinds = _fewest([self._ways(tuple(person)) for person in people], self._counts)
        if kinds is None:
            return
        for place, (person, kind) in enumerate(zip(people, kinds, strict=True)):
            _, ways = self._ways(tuple(person))[kind]
            if ways:
                self._set(mine, place, person, ways)
        self._repair.sort_individuals(mine)
        for name, values in mine.items():
            numbers[name][group] = values

    def _set(
        self, mine: Numbers, place: int, person: Sequence[int], ways: Sequence[Change]
    ) -> None:
        names = self._table.names
        (after,) = self._choice.parts(names, person, ways, 1).tolist()
        for name, part, before in zip(names, after, person, strict=True):
            if part != before:
                mine[name][[place]] = self._choice.numbers(name, part, mine[name][[place]])

    def _ways(self, person: tuple[int, ...]) -> dict[Kind, Ways]:
        """How an individual becomes one of each kind that it can become."""
        if person not in self._known:
            self._known[person] = dict(self._new_ways(person))
        return self._known[person]

    def _new_ways(self, person: tuple[int, ...]) -> Iterator[tuple[Kind, Ways]]:
        shared = self._rows.rules.of_groups
        own = [axis for axis, name in enumerate(self._table.names) if name not in shared]
        for kind, valid in self._valid.items():
            if valid[person]:
                yield kind, (0, [])
                continue
            ways = smallest_changes(person, valid, own)
            if ways:
                yield kind, (len(ways[0][0]), ways)


def _fewest(people: Sequence[dict[Kind, Ways]], counts: Sequence[Count]) -> list[Kind] | None:
    """The kinds of individuals that need the fewest changes for the right counts; None if none do."""
    reached: dict[tuple[int, ...], tuple[int, list[Kind]]] = {(0,) * len(counts): (0, [])}
    for ways in people:
        grown: dict[tuple[int, ...], tuple[int, list[Kind]]] = {}
        for numbers, (cost, kinds) in reached.items():
            for kind, (change, _) in ways.items():
                total = tuple(n + k for n, k in zip(numbers, kind, strict=True))
                if total not in grown or cost + change < grown[total][0]:
                    grown[total] = cost + change, [*kinds, kind]
        reached = grown
    allowed = [
        found
        for numbers, found in reached.items()
        if all(c.least <= n <= c.most for n, c in zip(numbers, counts, strict=True))
    ]
    return min(allowed, key=lambda found: found[0])[1] if allowed else None
