"""T4 for rules: the map of private rows keeps neighbours neighbours, so no price changes."""

from collections.abc import Iterator
from functools import cache
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from scrim.spec.two_level import TwoLevelSchema
from scrim.spec.workload import GroupSizes, Hierarchical
from synth.domain import Domain
from synth.queries import Marginal, QuerySet, compile_workload
from synth.rules.reading import following_rules
from synth.rules.row_rules import RowRules
from synth.run import run
from synth.table import Table
from synth.table.linking import number_keys
from tests.support import ADD_REMOVE, PROTECTIONS, coded_schema, coded_table, release
from tests.synth.linked import Household, household, linked_table, two_level_schema

SIZES = {"a": 2, "b": 3}
CELLS = list(product(range(2), range(3)))
Rows = tuple[tuple[int, int], ...]


def with_rules(schema: Schema | TwoLevelSchema, rules: list[dict[str, Any]]) -> Any:
    declared = schema.model_dump() | {"rules": rules}
    return type(schema).model_validate(declared, strict=False)


def only(code: int) -> dict[str, int]:
    return {"min": code, "max": code}


SCHEMA: Schema = with_rules(
    coded_schema(SIZES),
    [
        {"when": {"a": only(0)}, "then": {"b": {"min": 1}}},
        {"compare": ["a", "<=", "b"]},
    ],
)
A, AB = (Marginal.of(names, Domain.of(SCHEMA)) for names in ("a", "ab"))


def neighbours(rows: Rows, protection: Protection) -> Iterator[Rows]:
    """Every dataset that differs by one unit of at most two rows."""
    most = {"row": 1, "person": 2, "household": 2}[protection.unit]
    units = [u for m in range(1, most + 1) for u in combinations_with_replacement(CELLS, m)]
    if protection.relation == "add_remove":
        yield from (rows + unit for unit in units)
        return
    for size in range(1, min(len(rows), most) + 1):
        yield from (rows[size:] + unit for unit in units)


@cache
def counted(rows: Rows) -> np.ndarray:
    table = following_rules(coded_table(SCHEMA, rows))
    assert sum(len(chunk["a"]) for chunk in table.chunks()) == len(rows)
    return QuerySet([A, AB]).count(table)


@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda p: f"{p.unit}-{p.relation}")
def test_mapped_rows_move_counts_by_no_more_than_they_are_priced_for(
    protection: Protection,
) -> None:
    for n in range(3):
        for rows in combinations_with_replacement(CELLS, n):
            for other in neighbours(rows, protection):
                moved = counted(tuple(sorted(other))) - counted(rows)
                for block, part in zip([A, AB], QuerySet([A, AB]).split(moved), strict=True):
                    priced = block.sensitivity(protection)
                    assert np.abs(part).sum() <= priced.l1
                    assert (part**2).sum() <= priced.l2_squared
                    assert np.abs(part).max() <= priced.linf


def test_no_unit_moves_the_count_of_a_forbidden_cell() -> None:
    """Cells (0, 0) and (1, 0) are empty, whatever the rows are."""
    for rows in combinations_with_replacement(CELLS, 3):
        cells = counted(rows)[A.size :].reshape(2, 3)
        assert cells[:, 0].tolist() == [0, 0]


def test_the_map_does_not_depend_on_other_rows_or_chunks() -> None:
    rows = [*CELLS, *CELLS[::-1], (0, 0)]
    (whole,) = following_rules(coded_table(SCHEMA, rows)).chunks()
    for size in (1, 2, 5):
        parts = list(following_rules(coded_table(SCHEMA, rows, chunk_rows=size)).chunks())
        for name in SIZES:
            assert np.concatenate([part[name] for part in parts]).tolist() == whole[name].tolist()


@pytest.mark.random
def test_a_release_counts_mapped_rows() -> None:
    """Without the map, the counts of rows in forbidden cells would be lost."""
    spec = release({"name": "gaussian"}, budget={"rho": 1000.0})
    table = coded_table(SCHEMA, [(0, 0)] * 60)
    answers = run(spec, table, protection=ADD_REMOVE, delta=1e-9).answers
    assert answers is not None
    assert abs(answers.counts.sum() - 60) < 5
    assert answers.counts[1] > 55  # the cell (0, 1), the nearest that is allowed


TWO_LEVEL: TwoLevelSchema = with_rules(
    two_level_schema({"g": 2, "h": 2}, {"x": 3}, 2),
    [
        # With g named last, it would be changed first if it were a column of individuals.
        {"never": {"x": only(2), "h": only(0), "g": only(0)}},
        {"never": {"g": only(0), "h": only(1)}},
        {"when": {"g": only(1)}, "then": {"x": {"min": 1}}},
        {"compare": ["h", "<=", "x"]},
        {"group": {"where": {"x": only(2)}, "at_most": 1}},
    ],
)
LINKED = TWO_LEVEL.linked
HOUSEHOLDS: list[Household] = [
    (own, members)
    for own in product(range(2), range(2))
    for size in (1, 2)
    for members in combinations_with_replacement([(0,), (1,), (2,)], size)
]
OTHERS: list[Household] = [((0, 1), ((0,), (2,))), ((1, 1), ((0,),))]
QUERIES = compile_workload(
    [
        Hierarchical(type="hierarchical", k=1),
        Hierarchical(type="hierarchical", k=2),
        GroupSizes(type="group_sizes"),
    ],
    LINKED,
)


def counted_households(households: list[Household]) -> np.ndarray:
    return QUERIES.count(following_rules(linked_table(LINKED, households)))


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_mapped_households_move_counts_by_no_more_than_they_are_priced_for(relation: str) -> None:
    unit = household(2, relation)
    priced = [block.sensitivity(unit) for block in QUERIES.blocks]
    for others in ([], OTHERS):
        base = counted_households(others) if others else np.zeros(QUERIES.size, np.int64)
        each = [counted_households([*others, one]) for one in HOUSEHOLDS]
        pairs = (
            [(one, base) for one in each] if relation == "add_remove" else list(product(each, each))
        )
        for one, other in pairs:
            for part, most in zip(QUERIES.split(one - other), priced, strict=True):
                assert (part**2).sum() <= most.l2_squared
                assert np.abs(part).max() <= most.linf


def test_all_rows_of_a_group_get_the_same_columns_of_the_group() -> None:
    for one in HOUSEHOLDS:
        (chunk,) = following_rules(linked_table(LINKED, [one])).chunks()
        assert len(set(zip(chunk["g"].tolist(), chunk["h"].tolist(), strict=True))) == 1
        assert not RowRules(LINKED).broken(chunk).any()


def test_a_rule_about_groups_changes_no_private_row() -> None:
    """It would have to change one individual because of another."""
    (chunk,) = following_rules(linked_table(LINKED, [((1, 0), ((2,), (2,)))])).chunks()
    assert chunk["x"].tolist() == [2, 2]


REALS = TwoLevelSchema.model_validate(
    {
        "groups": {
            "key": "h",
            "columns": [
                {
                    "name": n,
                    "type": "real",
                    "lower": 0,
                    "upper": 3,
                    "decimals": 0,
                    "bins": {"width": 1},
                }
                for n in ("low", "high")
            ],
        },
        "individuals": {
            "group_key": "h",
            "columns": [
                {
                    "name": "x",
                    "type": "categorical",
                    "values": ["a", "b"],
                    "other": "b",
                    "nullable": False,
                }
            ],
        },
        "max_group_size": 2,
        "rules": [{"compare": ["low", "<", "high"]}, {"never": {"x": ["a"]}}],
    },
    strict=False,
).linked
"""Private numbers may have more decimals than a release, and each group has a rule that its members cannot
break."""


@pytest.mark.parametrize("own", [(0.3, 0.4), (1.0, 1.0), (2.6, 2.9), (0.2, 1.8)])
def test_no_individual_moves_the_columns_of_its_group(own: tuple[float, float]) -> None:
    found = set()
    for members in product((0, 1), repeat=2):
        chunk: dict[str, np.ndarray] = {"h": number_keys(np.zeros(2, np.int64))}
        for name, number in zip(("low", "high"), own, strict=True):
            chunk[name] = np.full(2, number)
        chunk["x"] = np.array(members, np.uint8)
        (mapped,) = following_rules(Table(REALS, [chunk])).chunks()
        assert not RowRules(REALS).broken(mapped).any()
        found |= set(zip(mapped["low"].tolist(), mapped["high"].tolist(), strict=True))
    assert len(found) == 1
    ((low, high),) = found
    assert low < high and low == round(low) and high == round(high)
