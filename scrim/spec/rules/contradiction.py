"""Rules that no row, or no group, can follow: refused with the smallest set that contradicts itself."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from scrim.spec.columns import AttributeColumn, CategoricalColumn, LabelledColumn
from scrim.spec.rules.axes import Axis
from scrim.spec.rules.rule import GroupRule, Rule
from scrim.spec.rules.rule_set import MAX_GROUP_RULES, Component, Order, RuleSet
from scrim.spec.rules.search import RuleSearch, TooEntangled, merged

MAX_CONNECTED = 2**20
"""Most combinations of parts of columns that rules connect."""


def refuse_contradictions(
    columns: Sequence[AttributeColumn],
    rules: Sequence[Rule],
    *,
    of_groups: Collection[str] | None = None,
    places: int = 1,
) -> None:
    """Refuse rules that do not fit the columns or each other; `of_groups` is None for a single table."""
    if not rules:
        return

    def chosen(numbers: Iterable[int]) -> RuleSet:
        mine = [rules[number] for number in numbers]
        return RuleSet.of(columns, mine, of_groups=of_groups or (), places=places)

    whole = chosen(range(len(rules)))
    _refuse_levels(rules, whole, is_linked=of_groups is not None)
    _refuse_circles(whole)
    for component in _searched(whole):
        if component.cells > MAX_CONNECTED:
            raise TooEntangled
    contradicting = _contradicting(whole)
    if contradicting is None:
        return
    for number in list(contradicting):
        fewer = [other for other in contradicting if other != number]
        if _contradicting(chosen(fewer)) is not None:
            contradicting = fewer
    raise ValueError(_refusal(contradicting))


def impossible_values(rules: RuleSet) -> Iterator[tuple[str, str]]:
    """Declared values that no row can have although no single rule says so: column and value."""
    for component in rules.components:
        for name in component.names:
            axis = component.axes[name]
            for part, codes in enumerate(axis.codes):
                if not _is_named_alone(component, name, part) and _never(component, name, part):
                    yield from _labels(axis, codes)


def _never(component: Component, name: str, part: int) -> bool:
    """Whether a bounded search proves that no row is in a part."""
    try:
        return RuleSearch().row(component, allowed={name: frozenset({part})}) is None
    except TooEntangled:
        return False


def _labels(axis: Axis, codes: Iterable[int]) -> Iterator[tuple[str, str]]:
    column = axis.column
    assert isinstance(column, LabelledColumn)
    labels = column.values if isinstance(column, CategoricalColumn) else column.labels
    return ((axis.name, labels[code]) for code in codes if code < len(labels))


def _is_named_alone(component: Component, name: str, part: int) -> bool:
    """Whether one rule about this column alone excludes the part, which is then deliberate."""
    alone = (each.parts[name] for each in component.forbidden if set(each.parts) == {name})
    return any(part in parts for parts in alone)


def _searched(rules: RuleSet) -> list[Component]:
    return [*rules.components, *([merged(rules)] if rules.counts else [])]


def _contradicting(rules: RuleSet) -> list[int] | None:
    """The rules of a component, or of all groups, that nothing can follow; None if there is none."""
    search = RuleSearch()
    for component in rules.components:
        if search.row(component) is None:
            return [number for number in component.rules if number >= 0]
    if rules.counts and search.group(rules) is None:
        return sorted({*merged(rules).rules, *(count.rule for count in rules.counts)} - {-1})
    return None


def _refusal(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"rule {numbers[0] + 1} cannot be followed; correct or remove it"
    *first, last = (str(number + 1) for number in numbers)
    return (
        f"rules {', '.join(first)} and {last} contradict each other: nothing follows all of them; correct "
        "or remove one of them"
    )


def _refuse_levels(rules: Sequence[Rule], whole: RuleSet, *, is_linked: bool) -> None:
    about_groups = [n for n, rule in enumerate(rules, 1) if isinstance(rule, GroupRule)]
    if about_groups and not is_linked:
        raise ValueError(
            f"rule {about_groups[0]}: only two-level schemas have rules about groups; use when and then, "
            "never or compare"
        )
    if len(about_groups) > MAX_GROUP_RULES:
        raise ValueError(f"at most {MAX_GROUP_RULES} rules may be about groups")
    for component in whole.components:
        names = {name for order in component.orders for name in (order.low, order.high)}
        strict = [order.rule for order in component.orders if order.is_strict]
        if strict and names & whole.of_groups and names - whole.of_groups:
            raise ValueError(
                f"rule {strict[0] + 1}: comparisons between a column of groups and one of individuals, and "
                "those connected with them, must use <= or >="
            )


def _refuse_circles(rules: RuleSet) -> None:
    left: list[Order] = list(rules.orders)
    while left:
        highs = {order.high for order in left}
        rest = [order for order in left if order.low in highs]
        if len(rest) == len(left):
            numbers = ", ".join(str(number + 1) for number in sorted({o.rule for o in rest}))
            raise ValueError(f"rules {numbers} compare columns in a circle; remove one of them")
        left = rest
