"""Change rows that break a rule, in as few columns as possible.

Where rows are linked, columns of groups come first, and by themselves: they change only if no individual
could have them, and then in the same way in all rows of a group. After that only columns of individuals
change.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

import numpy as np

from scrim.spec.rules.axes import Axis, decimals_of, is_whole
from scrim.spec.rules.rule_set import Order
from scrim.spec.schema import Attribute
from synth.rules.choice import RowChoice
from synth.rules.row_rules import Flags, Floats, Numbers, Parts, RowRules
from synth.rules.valid import ValidTable, smallest_changes
from synth.table.grid import grid_limits


class Repair:
    """Changes rows until they follow the rules of a schema."""

    def __init__(self, rows: RowRules) -> None:
        self.rows = rows
        self.shared = rows.rules.of_groups

    @cached_property
    def tables(self) -> list[ValidTable]:
        """The table of what is valid, for each set of connected columns."""
        return [ValidTable(component) for component in self.rows.rules.components]

    def of_groups(self, numbers: Numbers, choice: RowChoice) -> None:
        """Change the columns of groups, if no individual could have them."""
        for table in self.tables:
            names = [name for name in table.names if name in self.shared]
            if names:
                valid = table.projected(names)
                self._change(names, valid, numbers, choice, locked=())
                self._sort(table, numbers, names=set(names), locked=())

    def of_individuals(self, numbers: Numbers, choice: RowChoice) -> None:
        """Change columns that no group shares."""
        for table in self.tables:
            self._change(table.names, table.table, numbers, choice, locked=self.shared)
            self._sort(table, numbers, names=set(table.names), locked=self.shared)

    def sort_individuals(self, numbers: Numbers) -> None:
        """Put numbers of individuals in order; `numbers` has the columns of some tables."""
        for table in self.tables:
            if numbers.keys() >= set(table.names):
                self._sort(table, numbers, names=set(table.names), locked=self.shared)

    def _change(
        self,
        names: Sequence[str],
        valid: Flags,
        numbers: Numbers,
        choice: RowChoice,
        *,
        locked: Collection[str],
    ) -> None:
        parts = self.rows.parts({name: numbers[name] for name in names})
        before = np.stack([parts[name] for name in names], axis=1)
        wrong = np.flatnonzero(~valid[tuple(before.T)])
        if not len(wrong):
            return
        changeable = [axis for axis, name in enumerate(names) if name not in locked]
        after = before.copy()
        kinds, kind_of = np.unique(before[wrong], axis=0, return_inverse=True)
        for kind, found in enumerate(kinds.tolist()):
            mine = wrong[kind_of.ravel() == kind]
            ways = smallest_changes(found, valid, changeable)
            if ways:
                after[mine] = choice.parts(names, found, ways, len(mine))
        for axis, name in enumerate(names):
            moved = np.flatnonzero(after[:, axis] != before[:, axis])
            for part in np.unique(after[moved, axis]).tolist():
                mine = moved[after[moved, axis] == part]
                numbers[name][mine] = choice.numbers(name, part, numbers[name][mine])

    def _sort(
        self,
        table: ValidTable,
        numbers: Numbers,
        *,
        names: Collection[str],
        locked: Collection[str],
    ) -> None:
        """Put numbers of the same interval in order."""
        orders = [o for o in table.component.orders if o.low in names and o.high in names]
        if not orders:
            return
        attribute = self.rows.schema.attribute
        columns = {n: attribute(n) for o in orders for n in (o.low, o.high)}
        parts = self.rows.parts({name: numbers[name] for name in columns})
        put_in_order(numbers, self._ends(parts), _ranked(orders), columns, locked=locked)

    def _ends(self, parts: Parts) -> dict[str, Floats]:
        """The largest number of a release in each row's interval; infinite where it is missing."""
        axes = self.rows.rules.axes
        return {
            name: np.array([*_largest(axes[name]), np.inf])[mine] for name, mine in parts.items()
        }


def put_in_order(
    numbers: Numbers,
    ends: dict[str, Floats],
    orders: Sequence[Order],
    columns: Mapping[str, Attribute],
    *,
    locked: Collection[str],
) -> None:
    """Lower numbers until the following ones have room, then raise the following ones.

    `orders` are sorted: those that end in a column come before those that start in it. A number never
    leaves its interval, since parts are valid. Locked columns do not change.
    """
    most = {n: numbers[n] if n in locked else ends[n] for n in columns}
    for order in reversed(orders):
        limit = np.where(np.isnan(numbers[order.high]), np.inf, most[order.high])
        if order.is_strict:
            limit = _next(columns[order.low], limit, -1)
        if order.low not in locked:
            most[order.low] = np.minimum(most[order.low], limit)
    for name in columns:
        if name not in locked:
            numbers[name] = np.minimum(numbers[name], most[name])
    for order in orders:
        if order.high in locked:
            continue
        least = numbers[order.low]
        if order.is_strict:
            least = _next(columns[order.high], least, 1)
        high = numbers[order.high]
        numbers[order.high] = np.where(least > high, least, high)


def _largest(axis: Axis) -> Floats:
    """The largest number with the declared decimals in each interval of a column."""
    low, high = np.array(axis.intervals).T
    decimals = decimals_of(axis.column)
    if decimals is None:
        return np.asarray(high)
    first, last = grid_limits(low, high, 10.0**decimals)
    return np.where(first <= last, last / 10.0**decimals, high)


def _next(column: Attribute, numbers: Floats, direction: int) -> Floats:
    """The next number that a release of a column may hold, from one that it may hold."""
    decimals = decimals_of(column)
    if is_whole(column):
        return numbers + direction
    if decimals is not None:
        return np.asarray((np.rint(numbers * 10.0**decimals) + direction) / 10.0**decimals)
    return np.nextafter(numbers, direction * np.inf)


def _ranked(orders: Sequence[Order]) -> list[Order]:
    """Comparisons, those that end in a column before those that start in it."""
    rank = {name: 0 for o in orders for name in (o.low, o.high)}
    for _ in rank:
        for order in orders:
            rank[order.high] = max(rank[order.high], rank[order.low] + 1)
    return sorted(orders, key=lambda order: rank[order.low])
