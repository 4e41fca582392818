"""Halfspaces: whole numbers throughout, so that a row is in one or not, whatever the other rows are."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from scrim.spec.columns import LabelledColumn
from scrim.spec.schema import MAX_COLUMNS, Schema
from scrim.spec.workload import Halfspaces as HalfspacesItem
from synth.models.relaxed import RelaxedRows
from synth.queries import (
    HalfspaceQueries,
    QuerySet,
    compile_workload,
    halfspace,
    halfspace_counting,
)
from synth.queries import halfspace_draws as draws_module
from synth.queries.features import PLACES
from synth.queries.halfspace_draws import LARGEST_NORMAL, UNIT, WEIGHT, HalfspaceDraws
from synth.table import Table, store_numbers

SCHEMA = Schema.model_validate(
    {
        "columns": [
            {"name": "sex", "type": "categorical", "values": ["F", "M"], "other": "M"},
            {"name": "age", "type": "integer", "lower": 18, "upper": 90},
            {"name": "job", "type": "categorical", "values": list("abcdefg"), "nullable": False},
            {"name": "pay", "type": "real", "lower": -5.0, "upper": 95.0, "nullable": False},
            {"name": "one", "type": "integer", "lower": 5, "upper": 5},
        ]
    }
)


def compiled(count: int, seed: int, schema: Schema = SCHEMA) -> HalfspaceQueries:
    item = HalfspacesItem(type="halfspaces", count=count, seed=seed)
    (block,) = compile_workload([item], schema).blocks
    assert isinstance(block, HalfspaceQueries)
    return block


def random_numbers(schema: Schema, rows: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    numbers = {}
    for column in schema.attributes:
        if isinstance(column, LabelledColumn):
            numbers[column.name] = rng.integers(column.size, size=rows).astype(np.float64)
            continue
        drawn = rng.uniform(column.line.lower, column.line.upper, rows)
        drawn = np.rint(drawn) if column.type == "integer" else drawn
        numbers[column.name] = np.where(column.nullable & (rng.random(rows) < 0.2), np.nan, drawn)
    return numbers


def new_table(schema: Schema, numbers: dict[str, np.ndarray]) -> Table:
    return Table(schema, [store_numbers(schema, numbers)])


def by_hand(block: HalfspaceQueries, numbers: dict[str, np.ndarray], row: int) -> list[bool]:
    """Sums of a row in Python's own whole numbers, which never round."""
    (batch,) = block.batches()
    inside = []
    for weights, threshold in zip(batch.weights.tolist(), batch.thresholds.tolist(), strict=True):
        total, start = 0, 0
        for column in block.schema.attributes:
            number = float(numbers[column.name][row])
            if isinstance(column, LabelledColumn):
                total += weights[start + int(number)] * PLACES
                start += column.size
                continue
            if math.isnan(number):
                total += weights[start + 1] * PLACES
            else:
                span = (column.line.upper - column.line.lower) or 1
                total += weights[start] * round((number - column.line.lower) / span * PLACES)
            start += 2
        inside.append(total <= threshold)
    return inside


@pytest.mark.parametrize("merged", [1, 8, 256])
@pytest.mark.parametrize("at_once", [7, 128])
def test_counts_equal_sums_of_whole_numbers(
    merged: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(halfspace_counting, "MERGED_CODES", merged)
    monkeypatch.setattr(halfspace_counting, "HALFSPACES_AT_ONCE", at_once)
    block, numbers = compiled(30, seed=4), random_numbers(SCHEMA, 200)
    expected = np.sum([by_hand(block, numbers, row) for row in range(200)], axis=0)
    assert QuerySet([block]).count(new_table(SCHEMA, numbers)).tolist() == expected.tolist()
    assert 0 < np.median(expected) < 200


def wide_schema(columns: int) -> Schema:
    """As many columns as there may be, of all kinds."""
    kinds: list[dict[str, Any]] = [
        {"type": "real", "lower": 0.0, "upper": 1.0},
        {"type": "integer", "lower": 0, "upper": 9, "nullable": False},
        {"type": "categorical", "values": ["a", "b"], "other": "b"},
    ]
    declared = [{"name": f"c{i}", **kinds[i % 3]} for i in range(columns)]
    return Schema.model_validate({"columns": declared})


def test_a_thousand_columns_are_exact() -> None:
    schema = wide_schema(MAX_COLUMNS)
    block, numbers = compiled(20, seed=1, schema=schema), random_numbers(schema, 30)
    expected = np.sum([by_hand(block, numbers, row) for row in range(30)], axis=0)
    assert QuerySet([block]).count(new_table(schema, numbers)).tolist() == expected.tolist()


@pytest.mark.parametrize("columns", [1, 2, 10, 100, MAX_COLUMNS])
def test_no_sum_is_beyond_what_a_double_holds(columns: int) -> None:
    largest_weight = round(LARGEST_NORMAL * columns**-0.5 * WEIGHT)
    assert largest_weight < 2**31
    largest_sum = columns * largest_weight * PLACES
    assert largest_sum + LARGEST_NORMAL * UNIT < 2**53


def test_numbers_beyond_the_largest_are_moved_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draws_module, "LARGEST_NORMAL", 0.5)
    (batch,) = compiled(100, seed=1).batches()
    assert np.abs(batch.weights).max() == round(0.5 * 5**-0.5 * WEIGHT)
    assert np.abs(batch.thresholds).max() == 0.5 * UNIT


def test_weights_and_thresholds_are_distributed_as_in_the_paper() -> None:
    batches = list(compiled(4000, seed=11).batches())
    weights = np.concatenate([batch.weights for batch in batches]) / WEIGHT
    thresholds = np.concatenate([batch.thresholds for batch in batches]) / UNIT
    assert weights.shape == (4000, 3 + 2 + 8 + 2 + 2)
    assert abs(weights.mean()) < 0.01
    assert abs(weights.var() * 5 - 1) < 0.03
    assert abs(thresholds.mean()) < 0.1
    assert abs(thresholds.var() - 1) < 0.15


def test_the_choice_follows_from_the_seed_for_ever() -> None:
    """Up to a unit in the last place, by which logarithms may differ from machine to machine."""
    (batch,) = compiled(2, seed=7).batches()
    weights = [[2734434, 4974518, 2997650], [-598070, 9436659, 138848]]
    assert np.abs(batch.weights[:, :3] - weights).max() <= 1
    assert np.abs(batch.thresholds - [-43771085391, -452702477200]).max() <= 2**12


@pytest.mark.parametrize("other", [8, 7 + 2**32, 2**53 - 1])
def test_other_seeds_choose_others(other: int) -> None:
    (mine,), (others,) = (list(compiled(3, seed).batches()) for seed in (7, other))
    assert not set(mine.thresholds.tolist()) & set(others.thresholds.tolist())


def test_more_halfspaces_of_a_seed_begin_with_the_fewer() -> None:
    few, many = compiled(600, seed=3), compiled(1500, seed=3)
    fewer = np.concatenate([batch.thresholds for batch in few.batches()])
    more = np.concatenate([batch.thresholds for batch in many.batches()])
    assert more[:600].tolist() == fewer.tolist()
    assert len(set(more.tolist())) == 1500


def test_batches_that_do_not_fit_are_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = compiled(1500, seed=3)
    monkeypatch.setattr(draws_module, "KEPT_BYTES", 40_000)
    drawn = HalfspaceDraws(3, 1500, SCHEMA.attributes)
    for number in [2, 0, 1, 2]:
        assert drawn.batch(number).weights.tolist() == kept._draws.batch(number).weights.tolist()
    assert len(drawn._kept) == 1
    picked = [1499, 3, 700, 701]
    taken = drawn.take(picked)
    everything = np.concatenate([batch.weights for batch in kept.batches()])
    assert taken.weights.tolist() == everything[picked].tolist()


@pytest.mark.parametrize("entries", [1, 50, 10**6])
@pytest.mark.parametrize("tables", [0, 10**6], ids=["computed again", "kept"])
def test_batches_and_recomputation_change_nothing(
    monkeypatch: pytest.MonkeyPatch, entries: int, tables: int
) -> None:
    block = compiled(20, seed=2)
    chance = torch.Generator().manual_seed(0)
    places = torch.rand(4, generator=chance, dtype=torch.float64, requires_grad=True)
    missing = torch.rand(4, 1, generator=chance, dtype=torch.float64)
    categories = {
        "sex": torch.rand(4, 3, generator=chance, dtype=torch.float64),
        "job": torch.rand(4, 8, generator=chance, dtype=torch.float64),
    }

    def answers_and_gradient() -> tuple[torch.Tensor, torch.Tensor]:
        rows = RelaxedRows(
            SCHEMA,
            categories,
            {"age": places, "pay": places.square(), "one": places},
            {"age": missing, "one": missing},
            temperature=3.0,
        )
        answers = QuerySet([block]).on_relaxed(rows)
        return answers, torch.autograd.grad(answers.square().sum(), places)[0]

    expected = answers_and_gradient()
    monkeypatch.setattr(halfspace, "MAX_ENTRIES", entries)
    monkeypatch.setattr(halfspace, "KEPT_TABLES", tables)
    torch.testing.assert_close(answers_and_gradient(), expected)


def test_labels_are_readable() -> None:
    block = compiled(30, seed=3)
    assert list(block.labels(SCHEMA))[17] == "halfspace 17 of seed 3"
    assert list(block.only([17, 2]).labels(SCHEMA)) == [
        "halfspace 17 of seed 3",
        "halfspace 2 of seed 3",
    ]
