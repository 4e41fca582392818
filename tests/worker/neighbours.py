"""Uploads that differ by one protected unit. Some units have more rows than their bound."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

A: dict[str, Any] = {"name": "a", "type": "categorical", "values": ["x", "y", "z"]}
B: dict[str, Any] = {"name": "b", "type": "integer", "lower": 0, "upper": 9, "bins": {"width": 5}}
G: dict[str, Any] = {"name": "g", "type": "categorical", "values": ["town", "farm"]}
PERSON: dict[str, Any] = {"name": "pid", "type": "identifier"}

MAX_GROUP_SIZE = 2
RELATIONS = ("add_remove", "replace_one")

Row = tuple[str, ...]
Tables = Mapping[str, Sequence[Row]]
"""The rows of every table of a dataset, by the table's name."""


@dataclass(frozen=True)
class Neighbour:
    """One unit more, or another unit in its place."""

    tables: Tables
    read: tuple[str, ...] = ("rows", "linked", "groups", "individuals")
    """The tables for which it is a neighbour; the unit may be absent from the others."""


@dataclass(frozen=True)
class Case:
    """A population, what is declared about its data, an upload, and neighbours of it."""

    population: dict[str, Any]
    schema: dict[str, Any]
    base: Tables
    neighbours: dict[str, Neighbour]

    @property
    def read(self) -> tuple[str, ...]:
        """The stored tables that a release may be about."""
        if "groups" not in self.base:
            return ("rows",)
        # The groups of people are not released alone: their rows have no owner.
        is_person = self.population["unit"] == "person"
        return ("linked", "individuals") if is_person else ("linked", "groups", "individuals")

    @property
    def columns(self) -> dict[str, list[str]]:
        """The header of every uploaded table."""
        if "groups" not in self.base:
            return {"rows": [column["name"] for column in self.schema["columns"]]}
        own = [column["name"] for column in self.schema["individuals"]["columns"]]
        return {"groups": ["hid", "g"], "individuals": ["hid", *own]}

    def csv(self, tables: Tables, name: str) -> bytes:
        """One table as a file."""
        lines = [self.columns[name], *tables[name]]
        return "".join(",".join(line) + "\n" for line in lines).encode()


def row_case(relation: str) -> Case:
    """Every row is a unit; some values are outside the schema, or missing."""
    rows = [("xyz"[i % 3], str(i % 10)) for i in range(12)]
    others = {"plain": ("z", "9"), "unknown": ("??", "77"), "missing": ("", "")}
    kept = rows if relation == "add_remove" else rows[1:]
    return Case(
        {"unit": "row", "relation": relation},
        {"columns": [A, B]},
        {"rows": rows},
        {name: Neighbour({"rows": [*kept, row]}) for name, row in others.items()},
    )


def owned_case(unit: str, relation: str) -> Case:
    """A person, or a household in one table, keeps two rows and has up to six."""
    rows = [("xyz"[(i * j) % 3], str(i + j), f"p{i}") for i in range(6) for j in range(1 + i % 6)]
    kept = [row for row in rows if relation == "add_remove" or row[2] != "p4"]
    others = {
        "one row": [("z", "0", "new")],
        "as many as may be": [("z", "9", "new"), ("z", "8", "new")],
        "six rows": [("xyz"[j % 3], str(9 - j), "new") for j in range(6)],
        "six alike": [("z", "9", "new")] * 6,
    }
    if relation == "replace_one":
        others |= {
            "the same with other values": [("z", str(9 - j), "p4") for j in range(5)],
            "the same with fewer rows": [("y", "7", "p4")],
        }
    bound = "max_rows_per_person" if unit == "person" else "max_household_size"
    return Case(
        {"unit": unit, "relation": relation, bound: 2},
        {"columns": [A, B, PERSON]},
        {"rows": rows},
        {name: Neighbour({"rows": [*kept, *own]}) for name, own in others.items()},
    )


GROUPS: list[Row] = [(f"h{i}", ("town", "farm")[i % 2]) for i in range(6)]
"""The last of them is empty."""
MEMBERS: list[Row] = [
    *((f"h{i}", "xyz"[(i + j) % 3]) for i in range(5) for j in range(1 + i)),
    ("orphans", "x"),
]
"""Up to five in a household, and one whose household has no row."""


def household_case(relation: str) -> Case:
    """Whole households, of which two members are kept."""
    replaced = () if relation == "add_remove" else ("h3",)
    groups = [row for row in GROUPS if row[0] not in replaced]
    members = [row for row in MEMBERS if row[0] not in replaced]

    def with_household(described: int, own: str, **changes: Any) -> Neighbour:
        tables = {
            "groups": [*groups, *[("new", "farm")] * described],
            "individuals": [*members, *(("new", value) for value in own)],
        }
        return Neighbour(tables, **changes)

    return Case(
        {"unit": "household", "relation": relation, "max_household_size": 3},
        {
            "groups": {"key": "hid", "columns": [G]},
            "individuals": {"group_key": "hid", "columns": [A]},
            "max_group_size": MAX_GROUP_SIZE,
        },
        {"groups": GROUPS, "individuals": MEMBERS},
        {
            "one member": with_household(1, "z"),
            "as many as may be": with_household(1, "zz"),
            "five members": with_household(1, "zyxzy"),
            "described twice": with_household(2, "zz"),
            "without a row of its own": with_household(0, "zzz"),
            # An empty household, which linked tables do not contain.
            "without members": with_household(1, "", read=("groups", "individuals")),
        },
    )


def person_case(rows_of_a_person: int, relation: str) -> Case:
    """People with rows in several homes, more than are kept; homes with more than two people."""
    others = [
        (home, value, f"{home}-{number}")
        for home, values in {"h0": "x", "h1": "yz", "h2": "xyzx", "h3": "", "h4": "z"}.items()
        for number, value in enumerate(values)
    ]
    # Twice in one home, alone in another, and in one that has no row.
    homes = ("h0", "h1", "h2", "h2", "h3", "h4", "nowhere")

    def living(values: str, where: Sequence[str] = homes, *, who: str = "anna") -> Neighbour:
        own = [(home, value, who) for home, value in zip(where, values, strict=True)]
        return Neighbour({"groups": GROUPS, "individuals": [*others, *own]})

    if relation == "add_remove":
        base: Tables = {"groups": GROUPS, "individuals": others}
        neighbours = {
            "one row": living("x", ["h4"]),
            "alone": living("x", ["h3"]),
            "in a full home": living("y", ["h2"]),
            "many rows": living("xyzxyzx"),
            "twice in one home": living("zzz", ["h2", "h2", "h2"]),
        }
    else:
        base = living("xxxxxxx").tables
        neighbours = {
            name: living(values)
            for name, values in {
                "all other": "yyyyyyy",
                "one other": "yxxxxxx",
                "another": "xxzxxxx",
                "mixed": "xyzyzxy",
                "unknown": "zz?yz?z",
            }.items()
        } | {f"another person, {who}": living("xxxxxxx", who=who) for who in ("bert", "carl")}
    return Case(
        {"unit": "person", "relation": relation, "max_rows_per_person": rows_of_a_person},
        {
            "groups": {"key": "hid", "columns": [G]},
            "individuals": {"group_key": "hid", "columns": [A, PERSON]},
            "max_group_size": MAX_GROUP_SIZE,
        },
        base,
        neighbours,
    )


CASES: dict[str, Case] = {
    **{f"row, {relation}": row_case(relation) for relation in RELATIONS},
    **{
        f"{unit}, {relation}": owned_case(unit, relation)
        for unit in ("person", "household")
        for relation in RELATIONS
    },
    **{f"two levels, household, {relation}": household_case(relation) for relation in RELATIONS},
    **{
        f"two levels, person with {rows}, {relation}": person_case(rows, relation)
        for rows in (1, 2)
        for relation in RELATIONS
    },
}
