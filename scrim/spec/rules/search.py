"""A bounded search for a row, or a group, that follows rules."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from scrim.spec.rules.axes import Axis, room
from scrim.spec.rules.rule_set import Component, Count, Forbidden, Order, Parts, RuleSet

MAX_TRIED = 200_000
"""Most parts that are tried before rules are refused as too entangled."""

Assignment = dict[str, int]
Allowed = Mapping[str, Parts]


class TooEntangled(ValueError):
    """The search needs more steps than allowed."""

    def __init__(self) -> None:
        super().__init__(
            "the rules connect too many columns to be checked; connect fewer columns, or use fewer "
            "different bounds and lists"
        )


class RuleSearch:
    """Searches that share a limit of steps."""

    def __init__(self) -> None:
        self._left = MAX_TRIED

    def row(
        self,
        component: Component,
        *,
        allowed: Allowed | None = None,
        further: Sequence[Forbidden] = (),
    ) -> Assignment | None:
        """A part of each column that follows all rules and is among the allowed ones; None if none does."""
        names = _connected_order(component)
        rank = {name: position for position, name in enumerate(names)}
        last: list[list[Forbidden]] = [[] for _ in names]
        for each in (*component.forbidden, *further):
            last[max(rank[name] for name in each.parts)].append(each)
        ends: list[list[Order]] = [[] for _ in names]
        for order in component.orders:
            ends[max(rank[order.low], rank[order.high])].append(order)
        choices = [
            sorted((allowed or {}).get(name, range(component.axes[name].size))) for name in names
        ]
        found: Assignment = {}

        def extend(position: int) -> bool:
            if position == len(names):
                return has_room(component, found)
            name = names[position]
            for part in choices[position]:
                self._left -= 1
                if self._left < 0:
                    raise TooEntangled
                found[name] = part
                if (
                    not any(_is_in(each, found) for each in last[position])
                    and all(in_order(o, component.axes, found) for o in ends[position])
                    and extend(position + 1)
                ):
                    return True
            found.pop(name, None)
            return False

        return dict(found) if extend(0) else None

    def group(self, rules: RuleSet) -> tuple[Assignment, list[Assignment]] | None:
        """The parts of a group's columns, and those of its individuals; None if no group follows the rules.

        Only columns that are connected with rules about groups are in it.
        """
        component = merged(rules)
        shared = [name for name in component.names if name in rules.of_groups]
        for parts in product(*(range(component.axes[name].size) for name in shared)):
            own = dict(zip(shared, parts, strict=True))
            kinds = dict(self.kinds(component, rules.counts, own))
            chosen = counted(list(kinds), rules.counts, rules.places)
            if chosen is not None:
                return own, [kinds[kind] for kind in chosen]
        return None

    def kinds(
        self, component: Component, counts: Sequence[Count], own: Assignment
    ) -> Iterator[tuple[tuple[bool, ...], Assignment]]:
        """For each set of counts that some individual of such a group is in, one of them."""
        for kind in product((False, True), repeat=len(counts)):
            allowed = {name: frozenset({part}) for name, part in own.items()}
            further: list[Forbidden] = []
            for count, is_counted in zip(counts, kind, strict=True):
                if not is_counted:
                    further.append(Forbidden(count.rule, count.parts))
                    continue
                for name, parts in count.parts.items():
                    before = allowed.get(name, frozenset(range(component.axes[name].size)))
                    allowed[name] = before & parts
            found = self.row(component, allowed=allowed, further=further)
            if found is not None:
                yield kind, found


def merged(rules: RuleSet) -> Component:
    """The columns that are connected with rules about groups, as one component."""
    counted_names = {name for count in rules.counts for name in count.parts}
    mine = [c for c in rules.components if counted_names.intersection(c.names)]
    return Component(
        tuple(name for c in mine for name in c.names),
        rules.axes,
        tuple(f for c in mine for f in c.forbidden),
        tuple(o for c in mine for o in c.orders),
    )


def counted(
    kinds: Sequence[tuple[bool, ...]], counts: Sequence[Count], places: int
) -> list[tuple[bool, ...]] | None:
    """The smallest group of such individuals whose counts are all allowed; None if there is none."""
    most = [count.most for count in counts]
    reached: dict[tuple[int, ...], list[tuple[bool, ...]]] = {(0,) * len(counts): []}
    for _ in range(places):
        grown: dict[tuple[int, ...], list[tuple[bool, ...]]] = {}
        for numbers, members in reached.items():
            for kind in kinds:
                total = tuple(n + k for n, k in zip(numbers, kind, strict=True))
                if all(n <= limit for n, limit in zip(total, most, strict=True)):
                    grown.setdefault(total, [*members, kind])
        for total, members in grown.items():
            if all(n >= count.least for n, count in zip(total, counts, strict=True)):
                return members
        reached = grown
    return None


def in_order(order: Order, axes: Mapping[str, Axis], found: Assignment) -> bool:
    """Whether numbers of two parts can be in order."""
    low, high = axes[order.low], axes[order.high]
    first, second = found[order.low], found[order.high]
    if first == low.missing or second == high.missing:
        return True
    start, end = low.intervals[first][0], high.intervals[second][0]
    if start == end and order.is_strict:
        return room(low.column, low.intervals[first]) >= 1
    return start <= end


def has_room(component: Component, found: Assignment) -> bool:
    """Whether chains of strict comparisons inside one interval have as many numbers as they need."""
    strict = [o for o in component.orders if _is_together(o, component.axes, found)]
    needed = {name: 0 for o in strict for name in (o.low, o.high)}
    for _ in needed:
        for order in strict:
            needed[order.high] = max(needed[order.high], needed[order.low] + order.is_strict)
    return all(
        room(component.axes[name].column, component.axes[name].intervals[found[name]]) >= steps
        for name, steps in needed.items()
    )


def _is_together(order: Order, axes: Mapping[str, Axis], found: Assignment) -> bool:
    low, high = axes[order.low], axes[order.high]
    first, second = found[order.low], found[order.high]
    if first == low.missing or second == high.missing:
        return False
    return low.intervals[first] == high.intervals[second]


def _is_in(forbidden: Forbidden, found: Assignment) -> bool:
    return all(found[name] in parts for name, parts in forbidden.parts.items())


def _connected_order(component: Component) -> list[str]:
    """The columns, each after one that a rule connects it with, the small ones first."""
    links: dict[str, set[str]] = {name: set() for name in component.names}
    sets: Iterable[Iterable[str]] = (
        *(each.parts for each in component.forbidden),
        *((o.low, o.high) for o in component.orders),
    )
    for names in sets:
        for name in names:
            links[name].update(names)
    left, order, near = set(component.names), list[str](), set[str]()
    while left:
        name = min(left, key=lambda n: (n not in near, component.axes[n].size, n))
        left.remove(name)
        order.append(name)
        near |= links[name]
    return order
