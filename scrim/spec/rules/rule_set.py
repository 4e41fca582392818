"""The rules of a schema in terms of the parts of its columns."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from scrim.spec.columns import AttributeColumn
from scrim.spec.rules.axes import (
    Axis,
    Meeting,
    are_comparable,
    axis_of,
    meeting_of,
    starts_of,
)
from scrim.spec.rules.rule import Compare, Condition, GroupRule, Never, Rule, WhenThen

MAX_GROUP_RULES = 8

Parts = frozenset[int]


@dataclass(frozen=True)
class Forbidden:
    """A combination of parts that no row is in; a row is in it if it is in one part of each column."""

    rule: int
    """The number of the rule, from 0."""
    parts: Mapping[str, Parts]


@dataclass(frozen=True)
class Order:
    """Two columns of numbers in order, unless one is missing."""

    rule: int
    low: str
    high: str
    is_strict: bool


@dataclass(frozen=True)
class Count:
    """How many individuals of a group are in some parts of every column."""

    rule: int
    parts: Mapping[str, Parts]
    least: int
    most: int


@dataclass(frozen=True)
class Component:
    """Columns that rules connect, directly or through others."""

    names: tuple[str, ...]
    axes: Mapping[str, Axis]
    forbidden: tuple[Forbidden, ...]
    orders: tuple[Order, ...]

    @cached_property
    def cells(self) -> int:
        """The number of combinations of parts."""
        return math.prod(self.axes[name].size for name in self.names)

    @property
    def rules(self) -> list[int]:
        """The numbers of its rules."""
        forbidden, orders = (f.rule for f in self.forbidden), (o.rule for o in self.orders)
        return sorted({*forbidden, *orders})


@dataclass(frozen=True)
class RuleSet:
    """The rules of a schema."""

    axes: Mapping[str, Axis]
    """The columns that rules mention, in the schema's order."""
    forbidden: tuple[Forbidden, ...]
    orders: tuple[Order, ...]
    counts: tuple[Count, ...]
    of_groups: frozenset[str]
    """The columns that all rows of a group share."""
    places: int
    """The largest number of rows in a group."""
    listed: Mapping[str, tuple[int, ...]]
    """The codes that `then` lists for a column of values, in order."""
    firsts: tuple[str, ...]
    """The columns that are changed first in a row that breaks a rule."""

    @classmethod
    def of(
        cls,
        columns: Iterable[AttributeColumn],
        rules: Sequence[Rule],
        *,
        of_groups: Collection[str] = (),
        places: int = 1,
    ) -> "RuleSet":
        """Resolve rules, or refuse those that do not fit the columns."""
        reader = _RuleReader({column.name: column for column in columns})
        for number, rule in enumerate(rules):
            try:
                reader.read(number, rule)
            except ValueError as problem:
                raise ValueError(f"rule {number + 1}: {problem}") from None
        _refuse_implied(reader.orders, of_groups)
        axes = reader.axes()
        return cls(
            axes=axes,
            forbidden=(*_without_numbers(axes), *reader.forbidden(axes)),
            orders=tuple(reader.orders),
            counts=tuple(reader.counts(axes)),
            of_groups=frozenset(of_groups),
            places=places,
            listed={name: tuple(dict.fromkeys(codes)) for name, codes in reader.listed.items()},
            firsts=tuple(dict.fromkeys(reader.firsts)),
        )

    @cached_property
    def components(self) -> tuple[Component, ...]:
        """The columns that rules about rows connect."""
        return self.connected([])

    def connected(self, further: Iterable[Iterable[str]]) -> tuple[Component, ...]:
        """The components, if further sets of columns are connected as well."""
        leader = {name: name for name in self.axes}

        def find(name: str) -> str:
            while leader[name] != name:
                name = leader[name]
            return name

        sets = [*(each.parts for each in self.forbidden), *((o.low, o.high) for o in self.orders)]
        for names in (*sets, *further):
            first, *others = names
            for other in others:
                leader[find(other)] = find(first)
        members: dict[str, list[str]] = {}
        for name in self.axes:
            members.setdefault(find(name), []).append(name)
        return tuple(
            Component(
                tuple(names),
                self.axes,
                tuple(f for f in self.forbidden if find(next(iter(f.parts))) == first),
                tuple(o for o in self.orders if find(o.low) == first),
            )
            for first, names in members.items()
        )


Resolved = Mapping[str, Meeting]


class _RuleReader:
    """Rules with the values of their conditions, before columns are divided."""

    def __init__(self, columns: Mapping[str, AttributeColumn]) -> None:
        self._columns = columns
        self._implications: list[tuple[int, Resolved, Resolved]] = []
        self._nevers: list[tuple[int, Resolved]] = []
        self._counted: list[tuple[int, Resolved, int, int]] = []
        self.orders: list[Order] = []
        self.listed: dict[str, list[int]] = {}
        self.firsts: list[str] = []

    def read(self, number: int, rule: Rule) -> None:
        """Add a rule."""
        if isinstance(rule, Compare):
            self.orders.append(self._order(number, rule))
            self.firsts.append(rule.compare[2])
        elif isinstance(rule, GroupRule):
            found, asked = self._resolved(rule.group.where), rule.group
            self._counted.append((number, found, asked.least, asked.most))
        elif isinstance(rule, Never):
            self._nevers.append((number, self._resolved(rule.never)))
            self.firsts.append(rule.columns[-1])
        else:
            self._read_implication(number, rule)

    def _read_implication(self, number: int, rule: WhenThen) -> None:
        then = self._resolved(rule.then)
        self._implications.append((number, self._resolved(rule.when), then))
        for name, meeting in then.items():
            self.listed.setdefault(name, []).extend(meeting.codes)
            self.firsts.append(name)

    def _resolved(self, conditions: Mapping[str, Condition]) -> Resolved:
        return {name: meeting_of(each, self._column(name)) for name, each in conditions.items()}

    def _column(self, name: str) -> AttributeColumn:
        if name not in self._columns:
            raise ValueError(
                f"there is no column {name!r} that is released; name a declared column that is not an "
                "identifier"
            )
        return self._columns[name]

    def _order(self, number: int, rule: Compare) -> Order:
        first, operator, second = rule.compare
        if not are_comparable(self._column(first), self._column(second)):
            raise ValueError(
                f"{first!r} and {second!r} cannot be compared; compare numbers of the same type, with the "
                "same decimals"
            )
        low, high = (first, second) if operator.startswith("<") else (second, first)
        return Order(number, low, high, is_strict=len(operator) == 1)

    def axes(self) -> dict[str, Axis]:
        """The columns of all rules, divided."""
        meetings: dict[str, list[Meeting]] = {
            name: [] for order in self.orders for name in (order.low, order.high)
        }
        sides = [side for _, *both in self._implications for side in both]
        for resolved in (
            *sides,
            *(each for _, each in self._nevers),
            *(each[1] for each in self._counted),
        ):
            for name, meeting in resolved.items():
                meetings.setdefault(name, []).append(meeting)
        shared = self._shared_starts(meetings)
        return {
            name: axis_of(column, meetings[name], shared.get(name, set()))
            for name, column in self._columns.items()
            if name in meetings
        }

    def _shared_starts(self, meetings: Mapping[str, list[Meeting]]) -> dict[str, set[float]]:
        """Columns that are compared are divided at the same numbers."""
        starts: dict[str, set[float]] = {}
        for order in self.orders:
            for name in (order.low, order.high):
                column = self._columns[name]
                starts.setdefault(name, starts_of(column, meetings[name]))
        changed = True
        while changed:
            changed = False
            for order in self.orders:
                both = starts[order.low] | starts[order.high]
                changed |= both != starts[order.low] or both != starts[order.high]
                starts[order.low] = starts[order.high] = both
        return starts

    def forbidden(self, axes: Mapping[str, Axis]) -> Iterable[Forbidden]:
        """What no row is in: of an implication, everything that meets `when` and not some part of `then`."""
        for number, resolved in self._nevers:
            yield Forbidden(number, _parts(resolved, axes))
        for number, when, then in self._implications:
            before = _parts(when, axes)
            for name, parts in _parts(then, axes).items():
                rest = frozenset(range(axes[name].size)) - parts
                if rest:
                    yield Forbidden(number, {**before, name: rest})

    def counts(self, axes: Mapping[str, Axis]) -> Iterable[Count]:
        """The rules about groups."""
        for number, resolved, least, most in self._counted:
            yield Count(number, _parts(resolved, axes), least, most)


def _refuse_implied(orders: Sequence[Order], of_groups: Collection[str]) -> None:
    """Refuse comparisons of columns of groups that only a column of individuals implies.

    A row could follow each rule about groups, and still none of its individuals all rules.
    """
    for first in sorted(of_groups):
        stated = _above(first, orders, through=of_groups)
        individuals = {o.high for o in orders} - set(of_groups)
        for last in sorted(_above(first, orders, through=individuals) & set(of_groups) - {first}):
            if last not in stated:
                raise ValueError(
                    f"the comparisons imply that {first!r} is at most {last!r}, for all individuals of a "
                    f'group; add the rule {{"compare": ["{first}", "<=", "{last}"]}}'
                )


def _above(first: str, orders: Sequence[Order], *, through: Collection[str]) -> set[str]:
    """The columns that comparisons put above one, directly or through some others."""
    found, waiting = set[str](), [first]
    while waiting:
        name = waiting.pop()
        new = {order.high for order in orders if order.low == name} - found
        found |= new
        waiting += [each for each in new if each in through]
    return found


def _parts(resolved: Resolved, axes: Mapping[str, Axis]) -> dict[str, Parts]:
    return {name: axes[name].parts(meeting) for name, meeting in resolved.items()}


def _without_numbers(axes: Mapping[str, Axis]) -> Iterable[Forbidden]:
    """Parts without a number of the declared decimals cannot be released."""
    return (Forbidden(-1, {name: axis.empty}) for name, axis in axes.items() if axis.empty)
