"""Conjunctions: counted as by comparing every row, however they are batched, on numbers and on bins."""

from typing import Any

import numpy as np
import pytest
import torch

from scrim.spec.columns import LabelledColumn
from scrim.spec.schema import Schema
from scrim.spec.workload import Prefixes, Ranges, WorkloadItem
from scrim.spec.workload.conditions import Conjunction, HasCode, InInterval, numeric_columns
from synth.domain import Domain
from synth.models.product import ProductMixture
from synth.models.support import Support
from synth.queries import ConjunctionQueries, QuerySet, compile_workload, conjunction_products
from synth.queries import conjunction_sums as sums_module
from synth.table import Table, store_numbers

SCHEMA = Schema.model_validate(
    {
        "columns": [
            {"name": "sex", "type": "categorical", "values": ["F", "M"], "other": "M"},
            {"name": "job", "type": "categorical", "values": list("abcdefg"), "nullable": False},
            {"name": "age", "type": "integer", "lower": 18, "upper": 90, "bins": {"width": 1}},
            {"name": "pay", "type": "real", "lower": -5.0, "upper": 95.0, "bins": {"count": 20}},
            {
                "name": "tax",
                "type": "real",
                "lower": 0.0,
                "upper": 1.0,
                "nullable": False,
                "bins": {"width": 0.1},
            },
        ]
    }
)
DOMAIN = Domain.of(SCHEMA)
ROWS = 3000


def random_numbers(rows: int) -> dict[str, np.ndarray]:
    """Numbers that often lie on edges of bins, where ends of intervals are."""
    rng = np.random.default_rng(1)
    numbers = {}
    for column in SCHEMA.attributes:
        if isinstance(column, LabelledColumn):
            numbers[column.name] = rng.integers(column.size, size=rows).astype(np.float64)
            continue
        drawn = np.where(
            rng.random(rows) < 0.5,
            rng.choice(column.edges, rows),
            rng.uniform(column.line.lower, column.line.upper, rows),
        )
        drawn = np.rint(drawn) if column.type == "integer" else drawn
        missing = column.nullable & (rng.random(rows) < 0.1)
        numbers[column.name] = np.where(missing, np.nan, drawn)
    return numbers


NUMBERS = random_numbers(ROWS)
TABLE = Table(SCHEMA, [store_numbers(SCHEMA, NUMBERS)])
ITEMS: dict[str, WorkloadItem] = {
    "prefixes": Prefixes(type="prefixes", count=400, seed=1),
    "prefixes without categories": Prefixes(
        type="prefixes", count=200, seed=2, categorical=0, numeric=3
    ),
    "prefixes of two categories": Prefixes(
        type="prefixes", count=200, seed=2, categorical=2, numeric=1
    ),
    "one-way ranges": Ranges(type="ranges", k=1, count=100, seed=3),
    "two-way ranges": Ranges(type="ranges", k=2, count=300, seed=3),
    "five-way ranges": Ranges(type="ranges", k=5, count=300, seed=3),
}


def matches(conjunction: Conjunction, numbers: dict[str, np.ndarray]) -> np.ndarray:
    """Which rows satisfy all conditions, one comparison after another."""
    found = np.ones(len(numbers["sex"]), bool)
    for condition in conjunction:
        mine = numbers[condition.column]
        if isinstance(condition, HasCode):
            found &= mine == condition.code
        elif isinstance(condition, InInterval):
            upper = numeric_columns(SCHEMA)[condition.column].line.upper
            below = (mine < condition.high) | ((condition.high == upper) & (mine == upper))
            found &= (mine >= condition.low) & below
        else:
            found &= np.isnan(mine)
    return found


@pytest.fixture(params=ITEMS)
def queries(request: pytest.FixtureRequest) -> QuerySet:
    return compile_workload([ITEMS[request.param]], SCHEMA)


@pytest.mark.parametrize("rows_at_once", [100, 2**16])
@pytest.mark.parametrize("worth_sorting", [0, 10, 10**9])
def test_counts_equal_comparing_every_row(
    queries: QuerySet, rows_at_once: int, worth_sorting: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sums_module, "SUMMED_AT_ONCE", rows_at_once)
    monkeypatch.setattr(sums_module, "WORTH_SORTING", worth_sorting)
    (block,) = queries.blocks
    assert isinstance(block, ConjunctionQueries)
    expected = [int(matches(conjunction, NUMBERS).sum()) for conjunction in block.conjunctions]
    assert queries.count(TABLE).tolist() == expected
    assert max(expected) > 0


def test_bins_answer_as_numbers_do() -> None:
    """All ends are edges of bins, so that the bins determine the answers."""
    queries = compile_workload([ITEMS["two-way ranges"], ITEMS["five-way ranges"]], SCHEMA)
    counted = queries.count(TABLE)
    support = Support.of(TABLE)
    np.testing.assert_allclose(ROWS * queries.on_support(support).numpy(), counted, atol=1e-8)
    one_hot = [
        torch.nn.functional.one_hot(support.codes[name].long(), DOMAIN.size_of[name])
        for name in DOMAIN.names
    ]
    mixture = ProductMixture(DOMAIN, torch.cat(one_hot, dim=1).double())
    each_once = Support(DOMAIN, support.codes, torch.ones_like(support.weights) / len(one_hot[0]))
    torch.testing.assert_close(queries.on_product(mixture), queries.on_support(each_once))


def test_every_threshold_on_whole_numbers_consists_of_bins() -> None:
    narrow = Schema(columns=[SCHEMA.attribute("sex"), SCHEMA.attribute("age")])
    item = Prefixes(type="prefixes", count=200, seed=9, numeric=1)
    (block,) = item.expand(narrow)
    assert block.unaligned(narrow) is None
    queries = compile_workload([item], narrow)
    table = Table(narrow, [store_numbers(narrow, NUMBERS)])
    answers = ROWS * queries.on_support(Support.of(table)).numpy()
    np.testing.assert_allclose(answers, queries.count(table), atol=1e-8)


def test_categories_beyond_16_bits() -> None:
    values = [str(i) for i in range(70_000)]
    schema = Schema.model_validate(
        {
            "columns": [
                {"name": "zip", "type": "categorical", "values": values},
                {"name": "x", "type": "real", "lower": 0.0, "upper": 1.0},
            ]
        }
    )
    wanted = ["3", "65539", "69999"]
    asked: list[dict[str, Any]] = [{"zip": value, "x": [0.0, 0.5]} for value in wanted]
    queries = compile_workload([Ranges(type="ranges", queries=asked)], schema)
    codes = np.array([3, 3, 65539, 69999, 70000, 3])
    numbers = {"zip": codes, "x": np.array([0.1, 0.5, 0.2, 0.3, 0.4, 0.4])}
    assert queries.count(Table(schema, [store_numbers(schema, numbers)])).tolist() == [2, 1, 1]


@pytest.mark.parametrize("entries", [1, 700, 10**6])
@pytest.mark.parametrize("kept", [0, 10**6], ids=["computed again", "kept"])
def test_batches_and_recomputation_change_nothing(
    monkeypatch: pytest.MonkeyPatch, entries: int, kept: int
) -> None:
    queries = compile_workload([Ranges(type="ranges", k=3, count=60, seed=4)], SCHEMA)
    chance = torch.Generator().manual_seed(0)
    shares = torch.rand(7, sum(DOMAIN.sizes), generator=chance, dtype=torch.float64)
    shares.requires_grad_()

    def answers_and_gradient() -> tuple[torch.Tensor, torch.Tensor]:
        answers = queries.on_product(ProductMixture(DOMAIN, shares))
        weights = torch.linspace(-1, 1, len(answers), dtype=torch.float64)
        return answers, torch.autograd.grad((answers * weights).sum(), shares)[0]

    expected = answers_and_gradient()
    monkeypatch.setattr(conjunction_products, "MAX_ENTRIES", entries)
    monkeypatch.setattr(conjunction_products, "KEPT_TABLES", kept)
    torch.testing.assert_close(answers_and_gradient(), expected)


def test_labels_are_readable() -> None:
    item = Ranges(
        type="ranges",
        queries=[
            {"sex": "F", "age": [20.0, 30.0]},
            {"sex": "F", "pay": [-5.0, 10.5]},
            {"age": None, "sex": None},
            {"pay": [0.0, 95.0]},
            {"pay": [-5.0, 95.0]},
        ],
    )
    (block,) = compile_workload([item], SCHEMA).blocks
    assert list(block.labels(SCHEMA)) == [
        "sex=F & age in [20, 30)",
        "sex=F & pay < 10.5",
        "age is missing & sex is missing",
        "pay in [0, 95]",
        "pay in [-5, 95]",
    ]
