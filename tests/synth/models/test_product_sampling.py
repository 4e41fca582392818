"""Rows drawn from a mixture of products: much closer to it than independent draws, and unbiased."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from synth.domain import Domain
from synth.models import product, refinement
from synth.models.product import ProductMixture
from synth.models.refinement import CrossTables, choose_tables
from synth.queries import Marginal, QuerySet

Codes = Mapping[str, NDArray[np.int64]]
SIZES = (2, 3, 4, 6)


def mixture_of(sizes: Sequence[int], components: int) -> ProductMixture:
    """Components that differ, with likely and unlikely codes in each."""
    rng = np.random.default_rng(5)
    blocks = [rng.dirichlet(np.full(size, 0.5), components) for size in sizes]
    domain = Domain(tuple(f"x{i}" for i in range(len(sizes))), tuple(sizes))
    return ProductMixture(domain, torch.from_numpy(np.concatenate(blocks, axis=1)).float())


def draw_independently(mixture: ProductMixture, rows: int, rng: np.random.Generator) -> Codes:
    component = rng.integers(len(mixture.probabilities), size=rows)
    return {
        name: mixture.codes_at(name, component, rng.random(rows)) for name in mixture.domain.names
    }


def marginals(mixture: ProductMixture, order: int) -> QuerySet:
    names = combinations(mixture.domain.names, order)
    return QuerySet(Marginal.of(attributes, mixture.domain) for attributes in names)


def excess(codes: Codes, mixture: ProductMixture, order: int) -> NDArray[np.float64]:
    """The excess of rows in each cell of all cross tables of that many attributes."""
    queries = marginals(mixture, order)
    counter = queries.blocks[0].counter(queries.blocks)
    counter.add(codes)
    rows = len(codes[mixture.domain.names[0]])
    return np.concatenate(counter.totals()) - rows * mixture.answer(queries).values


@pytest.mark.parametrize(
    ("rows", "components", "sizes"),
    [
        pytest.param(1, 20, SIZES, id="one row"),
        pytest.param(300, 1, SIZES, id="one component"),
        pytest.param(300, 20, (5,), id="one attribute"),
        pytest.param(300, 20, (1, 3, 1), id="attributes with one code"),
        pytest.param(300, 20, (1,), id="nothing to draw"),
        pytest.param(30, 100, SIZES, id="fewer rows than components"),
        pytest.param(300, 20, (101, 1001, 2, 500), id="attributes with many codes"),
    ],
)
def test_exactly_the_rows_that_were_asked_for(
    rows: int, components: int, sizes: tuple[int, ...]
) -> None:
    mixture = mixture_of(sizes, components)
    codes = mixture.sample(rows, np.random.default_rng(1))
    assert list(codes) == list(mixture.domain.names)
    for name, size in mixture.domain.size_of.items():
        assert codes[name].dtype == np.int64 and codes[name].shape == (rows,)
        assert codes[name].min() >= 0 and codes[name].max() < size


def test_the_seed_alone_decides() -> None:
    mixture = mixture_of(SIZES, 20)
    first, again, other = (
        np.stack(list(mixture.sample(500, np.random.default_rng(seed)).values()))
        for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_every_row_is_one_that_some_component_can_draw() -> None:
    low, high = [0.4, 0.6, 0.0, 0.0], [0.0, 0.0, 0.7, 0.3]
    domain = Domain(tuple("abcde"), (4,) * 5)
    mixture = ProductMixture(domain, torch.tensor([low * 5, high * 5, low * 5]))
    codes = np.stack(list(mixture.sample(1001, np.random.default_rng(1)).values()))
    is_high = codes >= 2
    assert np.all(is_high.all(axis=0) | ~is_high.any(axis=0))
    assert abs(is_high[0].sum() - 1001 / 3) <= 1


@pytest.mark.parametrize("rows", [200, 2000, 20_000])
def test_shares_of_single_codes_are_off_by_hardly_a_row(rows: int) -> None:
    mixture = mixture_of(SIZES, 50)
    assert np.abs(excess(mixture.sample(rows, np.random.default_rng(1)), mixture, 1)).max() < 2


@pytest.mark.parametrize(("order", "part"), [(2, 0.1), (3, 0.2)])
def test_the_error_is_a_fraction_of_that_of_independent_draws(order: int, part: float) -> None:
    mixture = mixture_of((*SIZES, 9, 5), 100)
    rng = np.random.default_rng(1)
    drawn = excess(mixture.sample(5000, rng), mixture, order)
    independent = excess(draw_independently(mixture, 5000, rng), mixture, order)
    assert np.sqrt(np.mean(drawn**2)) < part * np.sqrt(np.mean(independent**2))
    assert np.abs(drawn).max() < part * np.abs(independent).max()


def test_components_do_not_all_round_up_the_same_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product, "refine", lambda *_, **__: None)
    domain = Domain(("x",), (2,))
    mixture = ProductMixture(domain, torch.tensor([[0.02, 0.98]]).expand(500, 2))
    # Ten rows of each component expect 0.2 of the first code: none or one, 100 in all, give or take 9.
    rare = [(mixture.sample(5000, np.random.default_rng(s))["x"] == 0).sum() for s in range(10)]
    assert all(40 < count < 160 for count in rare)


@pytest.mark.statistical
def test_rows_are_unbiased_even_in_rare_cells() -> None:
    mixture = mixture_of((3, 4, 9, 16), 20)
    expected = 100 * mixture.answer(marginals(mixture, 2)).values
    samples = [mixture.sample(100, np.random.default_rng(seed)) for seed in range(200)]
    found = np.mean([excess(codes, mixture, 2) for codes in samples], axis=0)
    assert np.abs(found).max() < 0.35  # rows are whole, so single cells may be rounded
    rare = expected < 0.5
    # Standard error 0.012. If rare cells were compared, 14 % of their rows would be missing.
    assert abs(found[rare].sum() / expected[rare].sum()) < 0.07


def test_every_replacement_brings_the_tables_nearer() -> None:
    mixture = mixture_of(SIZES, 20)
    rng = np.random.default_rng(1)
    component = rng.integers(20, size=1000)
    codes = np.stack(
        [mixture.codes_at(n, component, rng.random(1000)) for n in mixture.domain.names]
    )
    tables = CrossTables.of(codes, mixture)
    distances, taken = [float(np.sum(tables.excess**2))], 0
    for turn in range(400):
        attribute = turn % len(SIZES)
        rows = rng.integers(1000, size=10)
        redrawn = mixture.codes_at(mixture.domain.names[attribute], component[rows], rng.random(10))
        taken += tables.take_best(codes, attribute, rows=rows, redrawn=redrawn)
        distances.append(float(np.sum(tables.excess**2)))
    assert taken > 100 and np.all(np.diff(distances) <= 0)
    np.testing.assert_allclose(tables.excess, CrossTables.of(codes, mixture).excess, atol=1e-3)


def test_the_work_is_bounded_whatever_the_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    choices = 0
    take_best = CrossTables.take_best

    def counted(self: CrossTables, *args: Any, **kwargs: Any) -> bool:
        nonlocal choices
        choices += 1
        take_best(self, *args, **kwargs)
        return True  # as if every choice were an improvement

    monkeypatch.setattr(CrossTables, "take_best", counted)
    monkeypatch.setattr(refinement, "MAX_WORK", 100 * refinement.WORK_PER_CHOICE)
    mixture_of(SIZES, 20).sample(100_000, np.random.default_rng(1))
    in_a_turn = refinement.ROWS_IN_A_TURN // refinement.CHOICES
    assert 50 < choices <= 100 + in_a_turn


def test_refinement_ends_when_it_is_no_longer_worthwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CrossTables, "take_best", lambda *_, **__: False)
    turns = 0
    codes_at = ProductMixture.codes_at

    def counted(self: ProductMixture, *args: Any) -> NDArray[np.int64]:
        nonlocal turns
        turns += 1
        return codes_at(self, *args)

    monkeypatch.setattr(ProductMixture, "codes_at", counted)
    mixture_of(SIZES, 20).sample(500, np.random.default_rng(1))
    assert turns == 2 * len(SIZES)  # the draw and one round


@pytest.mark.parametrize(
    ("sizes", "rows", "numbers"),
    [
        pytest.param([12] * 13, 50_000, [13, 78, 286], id="all of a small domain"),
        pytest.param([12] * 13, 10_000_000, [13, 28, 20], id="many rows"),
        pytest.param([101] * 40 + [1001] * 8, 50_000, [48, 406, 4], id="many codes"),
        pytest.param([2] * 500, 50_000, [500, 1176, 1140], id="many attributes"),
    ],
)
def test_tables_fit_into_memory_and_time(sizes: list[int], rows: int, numbers: list[int]) -> None:
    domain = Domain(tuple(f"x{i}" for i in range(len(sizes))), tuple(sizes))
    tables = choose_tables(domain, rows)
    for order, number in zip(refinement.ORDERS, numbers, strict=True):
        chosen = [table for table in tables if len(table.attributes) == order]
        assert len(chosen) == number
        assert number * rows <= refinement.MAX_COUNTED
        assert sum(table.size for table in chosen) <= refinement.MAX_REFINED_CELLS
