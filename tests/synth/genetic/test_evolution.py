"""Generations: what is proposed, what survives, and what elites are."""

import numpy as np
import pytest
from numba import njit

from synth.genetic.candidates import new_candidates
from synth.genetic.elites import Elites, cell_of, new_elites
from synth.genetic.evaluation import Evaluation
from synth.genetic.evolution import evolve
from synth.genetic.query_counts import loss_of
from tests.synth.genetic.problems import Floats, new_problem, random_rows


@njit()
def read_cells(values: Floats, elites: Elites, elite: int, found: Floats) -> None:
    """Every cell of an elite."""
    for row in range(values.shape[0]):
        for column in range(values.shape[1]):
            found[row, column] = cell_of(values, elites, elite, row, column)


def tables_of(best: Evaluation, elites: Elites) -> list[Floats]:
    """The best rows, and the elites that there are."""
    tables = [best.values.copy()]
    for elite in range(int(np.isfinite(elites.excess).sum())):
        tables.append(np.zeros_like(best.values))
        read_cells(best.values, elites, elite, tables[-1])
    return tables


def rng_of(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("others", [0, 1, 2, 5])
def test_elites_are_what_their_excess_says_they_are(others: int) -> None:
    problem = new_problem("everything", 1)
    best = problem.evaluate(random_rows(30, rng_of(0)))
    elites, candidates, rng = new_elites(others), new_candidates(20), rng_of(2)
    seen = 0
    for _ in range(60):
        evolve(best, elites, candidates, mutations=10, generations=1, rng=rng)
        tables = tables_of(best, elites)
        seen = max(seen, len(tables))
        loss = problem.loss(tables[0])
        assert loss_of(best.query_counts) == pytest.approx(loss, rel=1e-9)
        excess = [problem.loss(table) - loss for table in tables[1:]]
        assert sorted(excess) == pytest.approx(excess, abs=1e-6)
        np.testing.assert_allclose(elites.excess[: len(excess)], excess, rtol=1e-6, atol=1e-6)
        assert all((elites.size[: len(excess)] >= 1).tolist())
    assert seen == others + 1


def test_the_best_rows_never_get_worse() -> None:
    best = new_problem("everything", 4).evaluate(random_rows(30, rng_of(0)))
    elites, candidates, rng = new_elites(1), new_candidates(20), rng_of(2)
    losses = []
    for _ in range(300):
        losses.append(loss_of(best.query_counts))
        evolve(best, elites, candidates, mutations=10, generations=1, rng=rng)
    assert np.diff(losses).max() <= 1e-9 * losses[0]
    assert losses[-1] < 0.9 * losses[0]


def test_several_candidates_of_a_generation_are_kept() -> None:
    rows = random_rows(200, rng_of(0))
    best = new_problem("everything", 4).evaluate(rows)
    evolve(best, new_elites(1), new_candidates(50), mutations=25, generations=1, rng=rng_of(1))
    kept = (best.values != rows) & ~(np.isnan(best.values) & np.isnan(rows))
    assert 2 <= kept.sum() <= 50


def test_a_crossover_gets_what_an_elite_has_in_that_column() -> None:
    problem = new_problem("everything", 5)
    best = problem.evaluate(random_rows(6, rng_of(0)))
    elites, candidates, rng = new_elites(2), new_candidates(30), rng_of(2)
    only_elsewhere = 0
    for _ in range(300):
        evolve(best, elites, candidates, mutations=15, generations=1, rng=rng)
        tables = tables_of(best, elites)
        evolve(best, elites, candidates, mutations=0, generations=1, rng=rng)
        for column, value in zip(candidates.column, candidates.value, strict=True):
            holders = [
                bool(np.isin(value, cells) or (np.isnan(value) and np.isnan(cells).any()))
                for cells in (table[:, column] for table in tables)
            ]
            assert any(holders)
            only_elsewhere += not holders[0]
    # Also what the best rows themselves do not have.
    assert only_elsewhere > 20


def test_a_mutation_gets_any_value_and_a_crossover_only_known_ones() -> None:
    problem = new_problem("everything", 6)
    rows = random_rows(50, rng_of(0))
    candidates = new_candidates(1000)
    evolve(
        problem.evaluate(rows),
        new_elites(1),
        candidates,
        mutations=600,
        generations=1,
        rng=rng_of(1),
    )
    is_real = candidates.column == 5
    known = np.isin(candidates.value, rows[:, 5])
    assert known[600:][is_real[600:]].all()
    assert not known[:600][is_real[:600]].any()
    assert set(candidates.row) == set(range(50))
    assert set(candidates.column) == set(range(6))


def test_how_generations_are_divided_over_calls_changes_nothing() -> None:
    problem = new_problem("everything", 7)
    found = []
    for calls in ([60], [1] * 60, [17, 43]):
        best = problem.evaluate(random_rows(30, rng_of(0)))
        elites, candidates, rng = new_elites(2), new_candidates(20), rng_of(2)
        for generations in calls:
            evolve(best, elites, candidates, mutations=10, generations=generations, rng=rng)
        found.append(best.values)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
