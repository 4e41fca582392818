"""Public rows beside a network: reweighted, compared with independent noise, and blended."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from synth.domain import Domain
from synth.measurements import Measurement
from synth.mechanisms.generative_network_pub import HELD_OUT, learn_share, thin
from synth.mechanisms.public_weights import reweight_rows
from synth.models.product import ProductMixture
from synth.models.support import Support
from synth.queries import Marginal, QuerySet
from tests.support import coded_schema, coded_table

SIZES = {"a": 3, "b": 4, "c": 5}
SCHEMA = coded_schema(SIZES)
DOMAIN = Domain.of(SCHEMA)
ROWS = 20_000
QUERIES = QuerySet([Marginal.of(pair, DOMAIN) for pair in combinations(SIZES, 2)])


def dependent_rows(rows: int, seed: int, *, rare: float = 0.5) -> list[list[int]]:
    """Two kinds of rows with different columns; `rare` is the share of the second."""
    random = np.random.default_rng(seed)
    second = random.random(rows) < rare
    columns = [
        np.where(second, size - 1 - random.integers(2, size=rows), random.integers(2, size=rows))
        for size in SIZES.values()
    ]
    return [[int(code) for code in row] for row in np.stack(columns, axis=1)]


def support_of(rows: list[list[int]]) -> Support:
    return Support.of(coded_table(SCHEMA, rows))


PRIVATE = support_of(dependent_rows(ROWS, seed=1))
TRUTH = PRIVATE.answer(QUERIES).values
INDEPENDENT = ProductMixture(
    DOMAIN, torch.cat([PRIVATE.marginal([name]) for name in SIZES]).float()[None]
)


def measured(sigma: float, seed: int = 2) -> list[Measurement]:
    """All pairs of the private rows, with seeded noise: nothing here is private."""
    random = np.random.default_rng(seed)
    counts = QUERIES.split(ROWS * TRUTH)
    return [
        Measurement(block, true + random.normal(0, sigma, len(true)), sigma)
        for block, true in zip(QUERIES.blocks, counts, strict=True)
    ]


def error(answers: NDArray[np.float64]) -> float:
    return float(np.abs(answers - TRUTH).mean())


def test_weights_follow_what_stands_out_and_nothing_else() -> None:
    off = support_of(dependent_rows(4000, seed=3, rare=0.3))
    before, after = error(off.answer(QUERIES).values), []
    for sigma in (20.0, 1e6):
        fitted = reweight_rows(off, measured(sigma), rows=ROWS)
        after.append(error(fitted.answer(QUERIES).values))
    assert after[0] < before / 10
    assert after[1] == pytest.approx(before, rel=1e-9)
    # The public rows themselves are unchanged.
    assert error(off.answer(QUERIES).values) == before


def test_public_counts_are_met_almost_exactly() -> None:
    off = support_of(dependent_rows(4000, seed=3, rare=0.3))
    exact = [replace(each, sigma=0.0) for each in measured(0.0)][:1]
    fitted = reweight_rows(off, exact, rows=ROWS)
    pair = QuerySet([exact[0].block])
    assert np.abs(fitted.answer(pair).values - exact[0].values / ROWS).max() < 1e-3


def test_cells_without_a_row_stay_empty() -> None:
    fitted = reweight_rows(support_of([[0, 0, 0], [1, 1, 1]]), measured(20.0), rows=ROWS)
    assert fitted.weights.isfinite().all()
    assert fitted.weights.sum().item() == pytest.approx(1)


def test_thinned_halves_have_independent_noise_and_their_stated_scale() -> None:
    sigma, size = 30.0, 200_000
    block = Marginal.of(("a",), Domain(("a",), (size,)))
    noise = np.random.default_rng(5).normal(0, sigma, size)
    (kept,), (held,) = thin([Measurement(block, noise, sigma)])
    assert kept.sigma == pytest.approx(sigma * math.sqrt(1 + HELD_OUT))
    for half in (kept, held):
        assert half.values.std() == pytest.approx(half.sigma, rel=0.01)
    # Seeded, so this is not left to chance: 0.01 is 4.5 standard errors of a correlation.
    assert abs(np.corrcoef(kept.values, held.values)[0, 1]) < 0.01


class TestShare:
    def test_is_large_for_good_rows_and_zero_for_bad_ones(self) -> None:
        good = support_of(dependent_rows(20_000, seed=4))
        assert learn_share(INDEPENDENT, good, measured(20.0), rows=ROWS) > 0.95
        bad = support_of([[0, 3, 0], [2, 0, 4]])
        assert learn_share(INDEPENDENT, bad, measured(20.0), rows=ROWS) == 0.0

    def test_is_between_if_each_is_wrong_in_its_own_way(self) -> None:
        off = support_of(dependent_rows(20_000, seed=4, rare=0.2))
        share = learn_share(INDEPENDENT, off, measured(20.0), rows=ROWS)
        network, rows = INDEPENDENT.answer(QUERIES).values, off.answer(QUERIES).values
        assert 0.1 < share < 0.9
        blended = ((1 - share) * network + share * rows - TRUTH) ** 2
        assert blended.sum() < min(((network - TRUTH) ** 2).sum(), ((rows - TRUTH) ** 2).sum())

    def test_is_zero_if_both_answer_alike(self) -> None:
        always = torch.cat([torch.eye(size)[0] for size in SIZES.values()])[None]
        network, rows = ProductMixture(DOMAIN, always), support_of([[0, 0, 0]])
        assert learn_share(network, rows, measured(20.0), rows=ROWS) == 0.0
