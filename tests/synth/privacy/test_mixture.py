"""The best-mixture error: both bounds hold, the gap is closed, and no neighbour moves it too far."""

from functools import cache
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import OptimizeResult, linprog

from scrim.spec.population import Protection
from synth.domain import Domain
from synth.journal import MemoryJournal
from synth.models.support import Support
from synth.privacy import mixture, noise
from synth.privacy.mixture import GAP, Search, best_mixture_error
from synth.privacy.noise import FIXED_POINT
from synth.privacy.vault import Vault
from synth.queries import Marginal, QuerySet
from tests.support import PROTECTIONS, coded_schema, coded_table, random_rows
from tests.synth.privacy.test_sensitivity import ALL, CELLS, SCHEMA, Recorder, Rows, neighbours

SIZES = {"a": 2, "b": 3, "c": 3, "d": 2}


def marginals(schema: Any, k: int) -> QuerySet:
    domain = Domain.of(schema)
    return QuerySet(Marginal.of(names, domain) for names in combinations(domain.names, k))


def dense_reference(counts: np.ndarray, queries: QuerySet, support: Support, rows: int) -> float:
    """The whole linear program at once, with one row for each query and sign."""
    size = len(support.weights)
    matrix = np.stack(
        [
            queries.on_support(Support(support.domain, support.codes, unit)).numpy()
            for unit in torch.eye(size, dtype=torch.float64)
        ],
        axis=1,
    )
    error = np.ones((len(counts), 1))
    solved = linprog(
        np.append(np.zeros(size), 1.0),
        A_ub=np.block([[-matrix, -error], [matrix, -error]]),
        b_ub=np.concatenate([-counts, counts]),
        A_eq=np.append(np.ones(size), 0.0)[None, :],
        b_eq=[rows],
    )
    assert solved.status == 0
    return float(solved.fun)


def problem(
    private: int, public: int, k: int, seed: int
) -> tuple[np.ndarray, QuerySet, Support, int]:
    schema = coded_schema(SIZES)
    queries = marginals(schema, k)
    counts = queries.count(coded_table(schema, random_rows(SIZES, private, seed)))
    rows = np.random.default_rng(seed).integers(0, list(SIZES.values()), size=(public, len(SIZES)))
    return counts, queries, Support.of(coded_table(schema, rows.tolist())), max(1, private)


@settings(max_examples=60)
@given(st.integers(0, 400), st.integers(1, 40), st.integers(1, 3), st.integers(0, 10**6))
def test_it_lies_within_the_gap_below_the_dense_program(
    private: int, public: int, k: int, seed: int
) -> None:
    game = problem(private, public, k, seed)
    exact = dense_reference(*game) * FIXED_POINT
    assert exact - GAP - 1 <= best_mixture_error(*game) <= exact + 1


@settings(max_examples=30)
@given(st.integers(1, 300), st.integers(1, 30), st.integers(0, 10**6))
def test_bounds_hold_whoever_proposes(private: int, public: int, seed: int) -> None:
    """Wrong proposals of the solver must not make a bound cross the optimum."""
    game = problem(private, public, 2, seed)
    exact = dense_reference(*game) * FIXED_POINT
    search, rng = Search(*game), np.random.default_rng(seed)
    search._add_cuts(list(range(0, game[1].size, 2)))
    rows, cuts = len(game[2].weights), len(search._cuts)
    for proposal in (rng.exponential, rng.normal, lambda size: np.full(size, np.nan)):
        search._offer_weights(proposal(size=rows))
        search._offer_shares(proposal(size=cuts))
    assert search.lower <= exact + 1 and exact - 1 <= search.upper


@pytest.mark.parametrize("status", [1, 4], ids=["iteration limit", "numerical trouble"])
def test_a_failing_solver_changes_neither_outcome_nor_exit(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = problem(12, 5, 1, 3)
    exact = dense_reference(*game) * FIXED_POINT
    monkeypatch.setattr(mixture, "linprog", lambda *_, **__: OptimizeResult(status=status))
    assert exact - GAP - 1 <= best_mixture_error(*game) <= exact + 1


def test_nothing_ends_the_search_but_the_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result is priced as if it were within the gap, so the search waits for slow bounds."""
    game = problem(12, 5, 1, 3)
    upper = Search(*game).upper

    def creep(search: Search) -> None:
        search.lower = max(search.lower, upper - 9 * GAP) + GAP // 5

    monkeypatch.setattr(Search, "project", creep)
    monkeypatch.setattr(Search, "solve", lambda _search: False)
    monkeypatch.setattr(Search, "play", creep)
    monkeypatch.setattr(Search, "_lower_from_single_queries", lambda _search: 0)
    assert upper - GAP < best_mixture_error(*game) < upper


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 100), st.integers(2, 40), st.integers(0, 10**6))
def test_weights_sum_to_the_number_of_rows(private: int, public: int, seed: int) -> None:
    """Otherwise no mixture has that error; the errors of a marginal add up exactly."""
    counts, queries, support, _ = problem(private, public, 1, seed)
    rows, rng, size = 7 * private + 1, np.random.default_rng(seed), len(support.weights)
    search = Search(counts, queries, support, rows)
    for proposal in (rng.exponential(size=size), rng.normal(size=size), np.zeros(size)):
        for errors in queries.split(search._errors(proposal)):
            assert errors.sum() == (private - rows) * FIXED_POINT


def hard_problem() -> tuple[np.ndarray, QuerySet, Support, int]:
    """Rows (0, 0) and (1, 1) cannot give a=0 nine tenths and b=0 one tenth: half is lost on each."""
    schema = coded_schema({"a": 2, "b": 2})
    support = Support.of(coded_table(schema, [[0, 0], [1, 1]]))
    return np.array([90, 10, 10, 90]), marginals(schema, 1), support, 100


def test_the_linear_program_is_needed() -> None:
    assert best_mixture_error(*hard_problem()) == pytest.approx(40 * FIXED_POINT, abs=GAP)


PUBLIC = ([[0, 0], [1, 1]], [[0, 0], [0, 1], [1, 2]])


@pytest.mark.parametrize("protection", PROTECTIONS[:4], ids=lambda p: f"{p.unit}-{p.relation}")
def test_no_neighbour_moves_it_by_more_than_its_price_covers(
    protection: Protection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T4, with the gap: the exact optimum attains its sensitivity, what is found may add the gap."""
    recorder = Recorder()
    monkeypatch.setattr(noise, "gaussian", recorder.gaussian)
    supports = [Support.of(coded_table(SCHEMA, rows)) for rows in PUBLIC]
    # The least sensitive block comes first and last: it must not set the sensitivity of others.
    queries = QuerySet([ALL, *marginals(SCHEMA, 1).blocks, ALL])

    @cache
    def entering(rows: Rows, public: int) -> int:
        vault = Vault(
            coded_table(SCHEMA, rows), protection=protection, budget=0, journal=MemoryJournal()
        )
        vault.best_mixture(queries, supports[public], rows=3, budget=1)
        return int(recorder.values.pop()[0])

    largest = max(
        abs(entering(tuple(sorted(neighbour)), public) - entering(rows, public))
        for public in range(len(PUBLIC))
        for n in range(3)
        for rows in combinations_with_replacement(CELLS, n)
        for neighbour in neighbours(rows, protection)
    )
    covered = protection.max_rows_per_unit * FIXED_POINT
    assert recorder.l2_squared == (covered + GAP) ** 2
    assert covered - GAP <= largest <= covered + GAP


class Stopped(Exception):
    """What a caller raises to stop a search."""


def test_it_asks_again_and_again_whether_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """In every step that improves the bounds, also if the solver fails and only the game remains."""
    monkeypatch.setattr(mixture, "linprog", lambda *_, **__: OptimizeResult(status=1))
    game, asked = hard_problem(), 0

    def check() -> None:
        nonlocal asked
        asked += 1

    best_mixture_error(*game, check=check)
    assert asked > 1000

    def stop() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        best_mixture_error(*game, check=stop)
