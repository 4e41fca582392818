"""Every valid request is planned or refused quickly."""

import time
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from scrim.spec.budget import UNITS_PER_RHO
from scrim.spec.columns import Bins, CategoricalColumn, IntegerColumn
from scrim.spec.errors import SpecError
from scrim.spec.mechanism import MECHANISMS
from scrim.spec.preview import AccuracyTarget
from scrim.spec.release import AskedRelease
from scrim.spec.schema import Schema
from scrim.spec.two_level import TwoLevelSchema
from scrim.spec.workload import (
    Block,
    Hierarchical,
    Marginals,
    TreeBlock,
    expand,
    hierarchical,
    ranges,
)
from scrim.spec.workload.blocks import MAX_COMBINATIONS
from service.data.ledger.records import LedgerAccount
from service.releases.preview_schemas import PreviewView
from synth.planning.candidates import as_asked
from synth.planning.choice import resolve
from synth.planning.forecast import forecast
from synth.planning.forecast_budgets import Budgets
from synth.planning.spending import Setting
from synth.planning.subject import Subject
from tests.support import ADD_REMOVE, coded_schema

HUNDRED = coded_schema({**{f"c{i}": 3 for i in range(99)}, "wide": 10_000})
ACCOUNT = LedgerAccount(
    population_id=UUID(int=0),
    unit="row",
    relation="add_remove",
    rows_per_unit=1,
    delta_units=10**9,
    cap_units=UNITS_PER_RHO,
    spent_units=0,
    reserved_units=0,
)


def numbers(count: int, *, bins: int = 32) -> Schema:
    """That many columns x0, x1, ... of whole numbers."""
    column = {"type": "integer", "lower": 0, "upper": 4095, "bins": {"count": bins}}
    return Schema.model_validate(
        {"columns": [{**column, "name": f"x{position}"} for position in range(count)]}
    )


def ask(
    schema: Schema,
    *items: dict[str, Any],
    mechanism: str | dict[str, Any] = "auto",
    budget: dict[str, float] | None = None,
) -> None:
    """What a preview computes."""
    body = {
        "workload": list(items),
        "mechanism": {"name": mechanism} if isinstance(mechanism, str) else mechanism,
        "budget": budget or {"rho": 1.0},
    }
    resolved = resolve(AskedRelease.model_validate(body), schema, ADD_REMOVE, 1e-9)
    subject = Subject("rows", schema, ADD_REMOVE)
    found, budgets = forecast(resolved, subject), Budgets(resolved, subject, 1e-9)
    warnings = budgets.warnings(found)
    PreviewView.of(resolved, found, ACCOUNT, delta=1e-9, warnings=warnings)
    budgets.curve([0.01 * 1.5**step for step in range(20)])
    budgets.needed(AccuracyTarget(max_error=0.01), left=ACCOUNT.left_units)


def marginals(k: int, **fields: Any) -> dict[str, Any]:
    return {"type": "marginals", "k": k, **fields}


# What must work -----------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_a_thousand_marginals_of_a_hundred_columns_are_planned(k: int) -> None:
    ask(HUNDRED, marginals(k) if k < 3 else marginals(k, count=1000, seed=1))


def test_all_triples_of_fifty_columns_are_planned_by_their_pairs() -> None:
    fifty = coded_schema({f"c{i}": 3 for i in range(50)})
    blocks = expand([Marginals(type="marginals", k=3)], fifty)
    assert len(blocks.below(2).names) == 50 + 50 * 49 // 2
    ask(fifty, marginals(3))


# What is refused, before it is listed -------------------------------------------------------------


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([marginals(5)], "100 columns have 75287520 5-way marginals, more than 20000"),
        (
            [marginals(2)] * 5,
            "more than 20,000 marginals, trees and other blocks of queries; ask for fewer",
        ),
        (
            [marginals(10, count=5000, seed=1)],
            "contain 202,185 pairs of columns, more than 100,000; ask for fewer tables",
        ),
    ],
)
def test_workloads_are_bounded(items: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        ask(HUNDRED, *items)


def test_marginals_that_are_left_out_count_as_listed() -> None:
    schema = coded_schema({f"c{i}": 100 for i in range(20)})
    one = {"type": "marginals", "attributes": [["c0"]]}
    with pytest.raises(SpecError, match="more than 20,000 marginals"):
        ask(schema, one, marginals(5, count=15_000, seed=1), marginals(5, count=15_000, seed=2))


def test_sets_of_columns_of_groups_are_counted_and_not_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def listed(*_: Any) -> list[Any]:
        raise AssertionError("the sets were listed")

    monkeypatch.setattr(hierarchical, "choose_combinations", listed)
    monkeypatch.setattr(hierarchical, "combinations", listed)
    columns = [{"name": f"c{i}", "type": "categorical", "values": ["a"]} for i in range(40)]
    linked = TwoLevelSchema.model_validate(
        {
            "groups": {"key": "hid", "columns": columns[:20]},
            "individuals": {"group_key": "hid", "columns": columns[20:]},
            "max_group_size": 2,
        }
    ).linked
    item = {"type": "hierarchical", "k": 8}
    for fields in ({}, {"count": 2000, "seed": 1}):
        with pytest.raises(SpecError, match="more than 20,000 marginals"):
            expand([Hierarchical.model_validate({**item, **fields})], linked)


def test_levels_of_trees_are_counted_and_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    def listed(block: TreeBlock, schema: Schema) -> list[Any]:
        raise AssertionError("the tables were listed")

    monkeypatch.setattr(TreeBlock, "tables", listed)
    tree = {"type": "binary_tree", "k": 10, "levels": 16}
    with pytest.raises(SpecError, match="1,099,511,627,776 cross tables, one for each combination"):
        ask(numbers(10), tree)


def test_each_column_of_many_trees_is_aligned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []
    unaligned = TreeBlock.unaligned

    def counted(block: TreeBlock, schema: Schema) -> str | None:
        asked.append(block.attributes)
        return unaligned(block, schema)

    monkeypatch.setattr(TreeBlock, "unaligned", counted)
    ask(numbers(40), {"type": "binary_tree", "k": 2})
    assert asked == [(f"x{position}",) for position in range(40)]


def test_each_item_is_expanded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    expanded: list[int | None] = []
    expand_item = Marginals.expand

    def counted(item: Marginals, schema: Schema) -> list[Block]:
        expanded.append(item.k)
        return expand_item(item, schema)

    monkeypatch.setattr(Marginals, "expand", counted)
    ask(HUNDRED, marginals(1), marginals(2))
    assert expanded == [1, 2]


def test_items_are_expanded_once_however_many_budgets_are_planned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expanded: list[int | None] = []
    expand_item = Marginals.expand

    def counted(item: Marginals, schema: Schema) -> list[Block]:
        expanded.append(item.k)
        return expand_item(item, schema)

    monkeypatch.setattr(Marginals, "expand", counted)
    mechanism = {"name": "relaxed_projection", "measure": [marginals(2)]}
    ask(numbers(5, bins=4), marginals(1), mechanism=mechanism, budget={"epsilon": 1.0})
    # The last one is that of the other budgets.
    assert expanded == [1, 2, 2]


def test_blocks_of_repeated_items_count_for_each_item() -> None:
    schema, subject = numbers(10, bins=4), Subject("rows", numbers(10, bins=4), ADD_REMOVE)
    found = []
    for times in (1, 50):
        body = {
            "workload": [marginals(2)] * times,
            "mechanism": {"name": "relaxed_projection"},
            "budget": {"rho": 1.0},
        }
        resolved = resolve(AskedRelease.model_validate(body), schema, ADD_REMOVE, 1e-9)
        found.append(Budgets(resolved, subject, 1e-9).most)
    once, often = found
    assert often < once / 10


def test_each_interval_is_compared_with_the_bins_of_its_own_column(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[int] = []
    consist = ranges._consist_of_bins

    def counted(column: Any, intervals: Any) -> bool:
        compared.append(len(intervals))
        return consist(column, intervals)

    monkeypatch.setattr(ranges, "_consist_of_bins", counted)
    queries = [{f"x{i}": [0, 128]} for i in range(20) for _ in range(3)]
    ask(numbers(20), {"type": "ranges", "queries": queries}, mechanism="relaxed_projection")
    assert compared == [3] * 20


def test_a_columns_codes_and_edges_are_listed_once() -> None:
    column = CategoricalColumn(name="c", type="categorical", values=["a", "b"])
    assert column.code_of is column.code_of
    number = numbers(1).columns[0]
    assert isinstance(number, IntegerColumn)
    assert number.edges is number.edges
    assert number.model_copy(update={"bins": Bins(count=2)}).edges == (0, 2048, 4095)


def test_marginals_that_are_not_measured_are_counted_and_not_built() -> None:
    schema = numbers(10, bins=4)
    workload = [Marginals(type="marginals", k=3)]
    asked = expand(workload, schema)
    measured = as_asked(Setting(schema, ADD_REMOVE, UNITS_PER_RHO, 1000, asked))
    assert len(measured) > 10
    assert not any("blocks" in vars(asked.below(order)) for order in range(1, 4))


def test_named_queries_of_all_items_are_bounded() -> None:
    named = {"type": "ranges", "queries": [{"c0": "0"}] * 6000}
    with pytest.raises(ValidationError, match="name 12,000 queries in total, more than 10,000"):
        ask(HUNDRED, named, named)


def test_orders_with_too_many_marginals_are_not_listed() -> None:
    blocks = expand([Marginals(type="marginals", k=10, count=2000, seed=1)], HUNDRED)
    assert len(blocks.below(2).names) > 100
    assert blocks.below(5).names == []
    assert all(len(blocks.below(order).names) <= MAX_COMBINATIONS + 100 for order in range(1, 11))


# Times --------------------------------------------------------------------------------------------

SCHEMAS = {
    "100 columns": HUNDRED,
    "1000 columns": coded_schema({f"c{i}": 3 for i in range(1000)}),
    "200 numbers": numbers(200),
    "20 fine numbers": numbers(20, bins=4096),
}
WORKLOADS: dict[str, list[dict[str, Any]]] = {
    "pairs": [marginals(2)],
    "1000 of 10": [marginals(10, count=1000, seed=1)],
    "2200 of 10": [marginals(10, count=2200, seed=1)],
    "10,000 of 5": [marginals(5, count=10_000, seed=1)],
    "of 3, 4 and 5": [marginals(k, count=6000, seed=1) for k in (3, 4, 5)],
    "ranges": [{"type": "ranges", "k": 3, "count": 1_000_000, "seed": i} for i in range(100)],
    "prefixes": [{"type": "prefixes", "count": 1_000_000, "seed": i} for i in range(100)],
    "halfspaces": [{"type": "halfspaces", "count": 9000, "seed": i} for i in range(100)],
    "trees": [{"type": "binary_tree", "k": 2, "levels": 5}],
    "deep trees": [{"type": "binary_tree", "k": 2, "levels": 12}],
}


@pytest.mark.slow
def test_times_of_extreme_previews() -> None:
    """Print the processor time of each; docs/api.md promises a second."""
    found = {}
    names = ["auto", *(m.catalogue_name() for m in MECHANISMS if not m.needs_public_data)]
    for schema, declared in SCHEMAS.items():
        for workload, items in WORKLOADS.items():
            for name in names:
                start = time.process_time()
                try:
                    # An epsilon may need several plans, and the exact curve of each.
                    ask(declared, *items, mechanism=name, budget={"epsilon": 1.0})
                    outcome = "planned"
                except SpecError:
                    outcome = "refused"
                spent = time.process_time() - start
                found[f"{schema}, {workload}, {name}: {outcome}"] = spent
    slowest = sorted(found.items(), key=lambda each: -each[1])
    for label, seconds in slowest[:20]:
        print(f"{seconds:6.2f} s  {label}")
    assert slowest[0][1] < 3
