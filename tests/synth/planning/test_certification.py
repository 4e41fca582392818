"""What is certified of released rows, and what each operation may spend."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrim.spec.errors import SpecError
from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from scrim.spec.workload import HierarchicalBlock, WorkloadItem, expand
from synth.planning.certification import Certification, plan_certification
from tests.support import ADD_REMOVE, REPLACE_ONE, coded_schema, release
from tests.synth.linked import household, two_level_schema

SCHEMA = coded_schema({"a": 2, "b": 3, "one": 1})
LINKED = two_level_schema({"g": 2}, {"a": 3}, 4).linked
PAIRS = {"type": "marginals", "k": 2}
PERSON = Protection(unit="person", max_rows_per_person=3, relation="replace_one")


def workload(*items: dict[str, Any]) -> list[WorkloadItem]:
    return release({"name": "private_gsd"}, workload=list(items)).workload


def planned(*items: dict[str, Any], schema: Schema = SCHEMA, units: int = 1000) -> Certification:
    return plan_certification(units, expand(workload(*items), schema), schema)


def test_half_is_for_the_largest_error_and_the_rest_for_items_and_columns() -> None:
    found = planned(PAIRS, {"type": "marginals", "k": 1})
    assert (found.largest, found.per_item, found.for_columns) == (500, 125, 250)
    assert [block.attributes for block in found.columns] == [("a",), ("b",)]


def test_without_columns_that_have_cells_the_items_share_the_rest() -> None:
    numbers = {"name": "x", "type": "real", "lower": 0, "upper": 1}
    schema = Schema.model_validate({"columns": [numbers]})
    found = planned({"type": "halfspaces", "count": 5, "seed": 1}, schema=schema)
    assert (found.largest, found.per_item, found.columns) == (500, 500, ())


@given(st.integers(0, 10**6), st.integers(1, 5))
def test_the_operations_never_cost_more_than_the_whole(units: int, items: int) -> None:
    try:
        found = planned(*[PAIRS] * items, units=units)
    except SpecError as refused:
        assert "too small" in str(refused) and units < 4 * (items + 1)
        return
    spent = [each for _, each in found.moves(SCHEMA, ADD_REMOVE, 10)]
    assert len(spent) == items + 2 and min(spent) >= 1
    assert sum(spent) <= units


@pytest.mark.parametrize(
    ("item", "tables", "divisor"),
    [
        (PAIRS, 3, 6),
        ({"type": "binary_tree", "attributes": [["a", "b"], ["a", "c"]], "levels": 3}, 9 + 3, 24),
        ({"type": "halfspaces", "count": 7, "seed": 1}, 7, 7),
        ({"type": "ranges", "k": 2, "count": 4, "seed": 1}, 4, 4),
    ],
)
def test_the_tables_of_an_item(item: dict[str, Any], tables: int, divisor: int) -> None:
    """A tree is a table for each combination of levels; a predicate is one of two cells."""
    columns = [
        *({"name": name, "type": "integer", "lower": 0, "upper": 3, "bins": {"width": 1}} for name in "ab"),
        {"name": "c", "type": "categorical", "values": ["x"], "other": "x"},
    ]  # fmt: skip
    (found,) = planned(item, schema=Schema.model_validate({"columns": columns})).items
    assert (found.tables, found.divisor) == (tables, divisor)


@pytest.mark.parametrize(("protection", "c"), [(ADD_REMOVE, 1), (REPLACE_ONE, 2), (PERSON, 6)])
def test_what_a_unit_moves(protection: Protection, c: int) -> None:
    tables = {"type": "marginals", "attributes": [["a"], ["a", "b"], ["b"]]}
    (largest, _), (total, _), (columns, _) = planned(tables).moves(SCHEMA, protection, 50)
    assert (largest, total, columns) == (
        [50 * protection.max_rows_per_unit],
        [50 * 3 * c],
        [50 * c] * 2,
    )
    assert planned(tables).operations(SCHEMA, protection) == 3


def test_columns_of_groups_and_of_individuals() -> None:
    found = planned({"type": "hierarchical", "k": 1}, schema=LINKED)
    assert found.columns == (
        HierarchicalBlock(("g",), "group"),
        HierarchicalBlock(("a",), "individual"),
    )
    moved = [each for each, _ in found.moves(LINKED, household(4), 10)]
    # Groups by g, individuals by g, groups by a, individuals by a.
    assert moved == [[10 * 4], [10 * (1 + 4 + 3 + 4)], [10 * 1, 10 * 4]]
