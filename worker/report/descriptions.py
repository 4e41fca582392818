"""A release in words: its queries, its mechanism, and who is protected."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scrim.spec.mechanism import MechanismSpec
from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from scrim.spec.workload import (
    BinaryTree,
    GroupSizes,
    Halfspaces,
    Hierarchical,
    Marginals,
    Prefixes,
    Ranges,
    WorkloadItem,
)
from worker.report.texts import counted, shortened, whole

NAMED = 8
"""Number of sets of columns that are named; the others are only counted."""


@dataclass(frozen=True)
class Asked:
    """An item of a workload."""

    words: str
    blocks: int
    queries: int


@dataclass(frozen=True)
class Parameter:
    """A parameter of a mechanism."""

    name: str
    value: str
    meaning: str


def asked(items: Sequence[WorkloadItem], schema: Schema) -> list[Asked]:
    """Every item, with the number of its blocks and queries."""
    found = []
    for item in items:
        blocks = item.expand(schema)
        queries = sum(block.size(schema) for block in blocks)
        found.append(Asked(item_in_words(item), len(blocks), queries))
    return found


def item_in_words(item: WorkloadItem) -> str:
    """Describe an item of the workload."""
    match item:
        case Marginals():
            return _marginals(item)
        case Ranges():
            return _ranges(item)
        case BinaryTree():
            return _binary_tree(item)
        case Prefixes():
            return (
                f"{_drawn(item.count, item.seed, 'random prefix', 'random prefixes')}: rows with given "
                f"values in {counted(item.categorical, 'categorical column')} and below random "
                f"thresholds in {counted(item.numeric, 'column')} of numbers"
            )
        case Halfspaces():
            return (
                f"{_drawn(item.count, item.seed, 'random halfspace')}: rows on one side of a plane "
                "through all columns"
            )
        case Hierarchical():
            return _hierarchical(item)
        case GroupSizes():
            return "The sizes of groups: how many have one individual, two, and so on"


def _marginals(item: Marginals) -> str:
    if item.attributes is not None:
        return f"The cross tables of {_named(item.attributes)}, every cell"
    if item.count is not None:
        tables = _drawn(item.count, item.seed, f"{item.k}-way marginal")
        return f"{tables}: every cell of the cross table of {counted(item.k or 0, 'column')}"
    if item.k == 1:
        return "All one-way marginals: how often each value of every column occurs"
    return f"All {item.k}-way marginals: every cell of the cross table of any {item.k} columns"


def _ranges(item: Ranges) -> str:
    if item.queries is not None:
        return f"{counted(len(item.queries), 'named range')} of categories and intervals of numbers"
    ranges = _drawn(item.count or 0, item.seed, f"random {item.k}-way range")
    return f"{ranges}: rows with given categories and numbers in given intervals"


def _binary_tree(item: BinaryTree) -> str:
    finest = f"down to 1/{2**item.levels} of their declared range"
    if item.attributes is not None:
        return f"Binary trees over {_named(item.attributes)}: ever finer intervals of numbers, {finest}"
    crossed = "each column of numbers" if item.k == 1 else f"sets of {item.k} columns"
    return f"Binary trees over {crossed}: ever finer intervals of numbers, {finest}"


def _hierarchical(item: Hierarchical) -> str:
    levels = " and ".join(f"in {level}s" for level in item.levels)
    if item.attributes is not None:
        return f"The tables of {_named(item.attributes)}, counted {levels}"
    some = (
        "all" if item.count is None else f"{whole(item.count)} (seed {item.seed}) for each split of"
    )
    return f"Tables of {some} sets of {item.k} columns of groups and individuals, counted {levels}"


def _drawn(count: int, seed: int | None, noun: str, plural: str | None = None) -> str:
    return f"{counted(count, noun, plural)}, drawn in public with seed {seed}"


def _named(sets: Sequence[Sequence[str]]) -> str:
    names = [" × ".join(shortened(name, 40) for name in columns) for columns in sets[:NAMED]]
    more = len(sets) - len(names)
    return "; ".join(names) + (f"; and {whole(more)} more" if more else "")


def parameters(mechanism: MechanismSpec) -> list[Parameter]:
    """The parameters of a mechanism, with their descriptions."""
    return [
        Parameter(name, _value(getattr(mechanism, name)), _first_sentence(field.description))
        for name, field in type(mechanism).model_fields.items()
        if name not in {"name", "measure"}
    ]


def summary(mechanism: MechanismSpec) -> str:
    """What the mechanism does, in one line."""
    return (type(mechanism).__doc__ or "").partition("\n")[0]


def _value(value: Any) -> str:
    if value is None:
        return "own choice"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(_value, value))
    if hasattr(value, "model_dump"):
        return ", ".join(f"{name} {_value(each)}" for name, each in value.model_dump().items())
    return str(value)


def _first_sentence(text: str | None) -> str:
    first = " ".join((text or "").split()).partition(". ")[0].rstrip(".")
    return first.replace("`", "")


@dataclass(frozen=True)
class People:
    """The protected unit, in phrases for use in sentences."""

    one: str
    """Such as `one person`."""
    unit: str
    rows: str
    """What belongs to one of them."""
    bound: str
    neighbours: str
    count: str


def people(protection: Protection) -> People:
    """The unit and the relation, in plain words."""
    rows = protection.max_rows_per_unit
    one, unit, owned, bound = {
        "row": (
            "one row",
            "row",
            "the row",
            "Each row is protected on its own. A person who owns several rows has a weaker guarantee than "
            "for one row.",
        ),
        "person": (
            "one person",
            "person",
            "all rows of the person",
            f"Each person is protected with all of their rows, up to {whole(rows)}. Of people with more, "
            f"{counted(rows, 'row was', 'rows were')} kept before anything was counted.",
        ),
        "household": (
            "one household",
            "household",
            "all rows of the household",
            "Each household is protected as a whole, with all members and all of their rows, up to "
            f"{whole(rows)}. Of larger ones, {counted(rows, 'row was', 'rows were')} kept before "
            "anything was counted.",
        ),
    }[protection.unit]
    if protection.relation == "add_remove":
        neighbours = f"Two tables are neighbours if one of them has {one} more than the other."
        count = "The number of rows is private as well and was measured with noise."
    else:
        neighbours = (
            f"Two tables are neighbours if {one} of the first is replaced by another in the second."
        )
        count = f"The number of {unit}s is treated as public."
    return People(one, unit, owned, bound, neighbours, count)
