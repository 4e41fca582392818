"""The change of a row that breaks a rule: fixed for private rows, random for released ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from scrim.spec.rules.axes import Axis, decimals_of
from scrim.spec.rules.rule_set import RuleSet
from synth.rules.row_rules import Floats, Integers, parts_of
from synth.rules.valid import Change
from synth.table.grid import round_within


class RowChoice(Protocol):
    """Chooses among the smallest changes of rows."""

    def parts(
        self, names: Sequence[str], found: Sequence[int], ways: Sequence[Change], rows: int
    ) -> Integers:
        """The parts of each of `rows` rows after the change, one column for each name."""

    def numbers(self, name: str, part: int, before: Floats) -> Floats:
        """Numbers of a column in a part, for rows that had the numbers `before`."""


@dataclass(frozen=True)
class FixedChoice:
    """The same change for equal rows: the columns and values that rules name first.

    The change depends on the row alone, which the sensitivities rely on (docs/privacy.md, section 3.3).
    """

    rules: RuleSet

    def parts(
        self, names: Sequence[str], found: Sequence[int], ways: Sequence[Change], rows: int
    ) -> Integers:
        """The first of the ways, for all rows."""
        place = {name: position for position, name in enumerate(self.rules.firsts)}
        last = len(place)

        def rank(way: Change) -> list[int]:
            return sorted(place.get(names[axis], last) for axis in way[0])

        changed, cells = min(ways, key=rank)
        best = min(
            cells.tolist(),
            key=lambda cell: [
                self._rank(names[axis], part, found[axis])
                for axis, part in zip(changed, cell, strict=True)
            ],
        )
        after = list(found)
        for axis, part in zip(changed, best, strict=True):
            after[axis] = part
        return np.tile(np.array(after, np.int64), (rows, 1))

    def numbers(self, name: str, part: int, before: Floats) -> Floats:
        """The first listed value, or the nearest number."""
        axis = self.rules.axes[name]
        if part == axis.missing or axis.intervals:
            return nearest(axis, part, before)
        listed = [code for code in self.rules.listed.get(name, ()) if code in axis.codes[part]]
        return np.full(len(before), float([*listed, axis.codes[part][0]][0]))

    def _rank(self, name: str, part: int, before: int) -> int:
        """The position of a part: listed values, then missing, then others; numbers by distance."""
        axis = self.rules.axes[name]
        if axis.intervals:
            return axis.size if part == axis.missing else abs(part - min(before, axis.known - 1))
        listed = self.rules.listed.get(name, ())
        if part == axis.missing:
            return len(listed)
        places = [listed.index(code) for code in axis.codes[part] if code in listed]
        return min(places, default=len(listed) + 1 + part)


class DrawnChoice:
    """A random change, in proportion to how often drawn rows have the values."""

    def __init__(
        self, rules: RuleSet, drawn: Mapping[str, Floats], rng: np.random.Generator
    ) -> None:
        """`drawn`: the numbers of rows that a model drew."""
        self._rules = rules
        self._drawn = drawn
        self._rng = rng
        self._pools: dict[str, list[Floats]] = {}

    def parts(
        self, names: Sequence[str], found: Sequence[int], ways: Sequence[Change], rows: int
    ) -> Integers:
        """One of the ways for each row, in proportion to the product of the shares of its parts."""
        weights, after = [], []
        for changed, cells in ways:
            weight = np.ones(len(cells))
            whole = np.tile(np.array(found, np.int64), (len(cells), 1))
            for column, axis in enumerate(changed):
                weight *= self._shares(names[axis])[cells[:, column]]
                whole[:, axis] = cells[:, column]
            weights.append(weight)
            after.append(whole)
        cumulative = np.concatenate(weights).cumsum()
        picked = np.searchsorted(cumulative, self._rng.random(rows) * cumulative[-1], side="right")
        return np.asarray(np.concatenate(after)[picked], np.int64)

    def numbers(self, name: str, part: int, before: Floats) -> Floats:
        """Values of drawn rows; if none is in the part, its nearest number or a random value of it."""
        axis = self._rules.axes[name]
        pool = self._pool(name)[part]
        if len(pool):
            return np.asarray(pool[self._rng.integers(len(pool), size=len(before))])
        if part == axis.missing or axis.intervals:
            return nearest(axis, part, before)
        return self._rng.choice(np.array(axis.codes[part], np.float64), size=len(before))

    def _shares(self, name: str) -> Floats:
        # A part that was not drawn may be the only one that is valid.
        return np.array([len(pool) + 1e-6 for pool in self._pool(name)])

    def _pool(self, name: str) -> list[Floats]:
        """The drawn numbers in each part of a column."""
        if name not in self._pools:
            axis, drawn = self._rules.axes[name], self._drawn[name]
            parts = parts_of(axis, drawn)
            self._pools[name] = [drawn[parts == part] for part in range(axis.size)]
        return self._pools[name]


def nearest(axis: Axis, part: int, before: Floats) -> Floats:
    """Missing, or the number of an interval that is nearest to the number before."""
    if part == axis.missing:
        return np.full(len(before), np.nan)
    low, high = axis.intervals[part]
    inside = np.clip(np.where(np.isnan(before), low, before), low, high)
    decimals = decimals_of(axis.column)
    return inside if decimals is None else round_within(inside, low, high, decimals)
