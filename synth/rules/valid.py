"""The combinations of parts of connected columns that follow all rules, as a table."""

from collections.abc import Sequence
from functools import cached_property
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from scrim.spec.rules.rule_set import Component, Count, Order
from scrim.spec.rules.search import has_room, in_order

Flags = NDArray[np.bool_]
Integers = NDArray[np.int64]
Change = tuple[tuple[int, ...], Integers]
"""Axes that change, and the parts that they may change to, one row for each way."""


class ValidTable:
    """What may occur together, one axis for each column."""

    def __init__(self, component: Component) -> None:
        self.component = component
        self.names = component.names

    @cached_property
    def table(self) -> Flags:
        """Whether each combination of parts follows the rules."""
        axes = [self.component.axes[name] for name in self.names]
        found = np.ones([axis.size for axis in axes], np.bool_)
        for each in self.component.forbidden:
            found[np.ix_(*(self._inside(name, each.parts.get(name)) for name in self.names))] = (
                False
            )
        for order in self.component.orders:
            found &= self._of_columns((order.low, order.high), (order,))
        if sum(order.is_strict for order in self.component.orders) > 1:
            names = dict.fromkeys(n for o in self.component.orders for n in (o.low, o.high))
            found &= self._of_columns(tuple(names), ())
        return found

    def inside(self, count: Count) -> Flags:
        """The combinations that a rule about groups counts."""
        found = np.zeros(self.table.shape, np.bool_)
        found[np.ix_(*(self._inside(name, count.parts.get(name)) for name in self.names))] = True
        return found

    def projected(self, names: Sequence[str]) -> Flags:
        """Whether each combination of some columns occurs with any values of the others."""
        others = tuple(axis for axis, name in enumerate(self.names) if name not in names)
        return np.asarray(self.table.any(axis=others))

    def _inside(self, name: str, parts: frozenset[int] | None) -> list[int]:
        return list(range(self.component.axes[name].size)) if parts is None else sorted(parts)

    def _of_columns(self, names: tuple[str, ...], orders: Sequence[Order]) -> Flags:
        """Comparisons of some columns, in the shape of the table: the given ones, or the room of all."""
        kept = [name for name in self.names if name in names]
        axes = self.component.axes
        sizes = [axes[name].size for name in kept]
        allowed = np.empty(sizes, np.bool_)
        for parts in product(*map(range, sizes)):
            found = dict(zip(kept, parts, strict=True))
            allowed[parts] = (
                all(in_order(order, axes, found) for order in orders)
                if orders
                else has_room(self.component, found)
            )
        shape = [axes[name].size if name in kept else 1 for name in self.names]
        return allowed.reshape(shape)


def smallest_changes(found: Sequence[int], valid: Flags, changeable: Sequence[int]) -> list[Change]:
    """The ways to change as few of the axes as possible such that the combination is valid."""
    for size in range(1, len(changeable) + 1):
        ways: list[Change] = []
        for changed in combinations(changeable, size):
            index = tuple(
                slice(None) if axis in changed else part for axis, part in enumerate(found)
            )
            cells = np.argwhere(valid[index])
            if len(cells):
                ways.append((changed, cells))
        if ways:
            return ways
    return []
