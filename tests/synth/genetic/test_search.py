"""The search as a whole: how far it gets, when it stops, and what its rows are."""

from itertools import pairwise

import numpy as np
import pytest

from scrim.spec.workload import Marginals, Prefixes
from synth.genetic import GeneticSearch, search
from synth.queries import QuerySet, compile_workload
from synth.table import Table, store_numbers
from tests.synth.genetic.problems import (
    NAMES,
    SCHEMA,
    WORKLOADS,
    Floats,
    count,
    new_problem,
    random_rows,
)

ROWS = 100


def new_search(*, seed: int = 0, generations: int = 20_000, rows: int = ROWS) -> GeneticSearch:
    return GeneticSearch(
        SCHEMA,
        rows=rows,
        mutations=20,
        crossovers=20,
        elites=2,
        generations=generations,
        seed=seed,
    )


def matrix(found: GeneticSearch) -> Floats:
    return np.stack([found.rows[name] for name in NAMES], axis=1)


def true_answers(queries: QuerySet) -> Floats:
    """True answers of rows whose columns depend on each other."""
    rows = random_rows(2000, np.random.default_rng(9))
    rows[:, 1] = rows[:, 3] > 3
    rows[:, 5] = (rows[:, 3] + 1) / 8
    return count(queries, rows) / 2000


@pytest.mark.parametrize("kind", WORKLOADS)
def test_it_comes_close_to_what_was_measured(kind: str) -> None:
    queries = compile_workload(WORKLOADS[kind], SCHEMA)
    truth = true_answers(queries)
    found = new_search()
    before = np.abs(count(queries, matrix(found)) / ROWS - truth)
    found.fit(queries, truth, np.full(queries.size, 0.005))
    after = np.abs(count(queries, matrix(found)) / ROWS - truth)
    assert after.max() < 0.05
    assert after.mean() < min(0.01, before.mean() / 4)


class TestRows:
    def test_exactly_as_many_as_asked_within_the_declaration(self) -> None:
        found = new_search(rows=37)
        problem = new_problem("everything", 1)
        found.fit(problem.queries, problem.values, problem.noise)
        assert {len(column) for column in found.rows.values()} == {37}
        [(_, numbers)] = Table(SCHEMA, [store_numbers(SCHEMA, found.rows)]).read(
            codes=(), numbers=NAMES
        )
        for name in NAMES:
            np.testing.assert_array_equal(found.rows[name], numbers[name].astype(np.float64))

    def test_they_are_a_copy(self) -> None:
        found = new_search()
        found.rows["age"][:] = 17
        assert set(found.rows["age"]) != {17}

    def test_the_same_seed_finds_the_same(self) -> None:
        problem = new_problem("everything", 2)
        tables = []
        for seed in (1, 1, 2):
            found = new_search(seed=seed)
            found.fit(problem.queries, problem.values, problem.noise)
            tables.append(matrix(found))
        np.testing.assert_array_equal(tables[0], tables[1])
        assert not np.array_equal(tables[0], tables[2], equal_nan=True)


class TestSeveralFits:
    def test_the_next_one_goes_on_from_the_rows_of_the_last(self) -> None:
        first, second = new_problem("prefixes", 1), new_problem("ranges", 2)
        found = new_search(generations=1)
        tables = [matrix(found)]
        for problem in (first, second):
            found.fit(problem.queries, problem.values, problem.noise)
            tables.append(matrix(found))
        for before, after in pairwise(tables):
            is_changed = (before != after) & ~(np.isnan(before) & np.isnan(after))
            assert 1 <= is_changed.sum() <= 40

    def test_rows_start_from_shares_once(self) -> None:
        queries = compile_workload([Marginals(type="marginals", attributes=[["sex"]])], SCHEMA)
        found = new_search(generations=1)
        found.fit(queries, np.array([0.1, 0.9]), np.full(2, 0.01))
        shares = found.rows["sex"].mean()
        assert shares == pytest.approx(0.9, abs=0.2)
        found.fit(queries, np.array([0.9, 0.1]), np.full(2, 0.01))
        # A second start would be at 0.1.
        assert found.rows["sex"].mean() > shares - 0.4 - 1e-9

    def test_a_later_measurement_is_met_without_losing_an_earlier_one(self) -> None:
        both = compile_workload(
            [Marginals(type="marginals", attributes=[["colour", "sex"], ["sex", "children"]])],
            SCHEMA,
        )
        truth = true_answers(both)
        found = new_search()
        one = QuerySet(both.blocks[:1])
        found.fit(one, truth[: one.size], np.full(one.size, 0.005))
        found.fit(both, truth, np.full(both.size, 0.005))
        assert np.abs(count(both, matrix(found)) / ROWS - truth).max() < 0.015


class TestStopping:
    def fit(self, noise: float, generations: int = 1_000_000) -> int:
        queries = compile_workload(WORKLOADS["marginals"], SCHEMA)
        found = new_search(generations=generations)
        return found.fit(queries, true_answers(queries), np.full(queries.size, noise))

    def test_it_ends_when_it_no_longer_improves(self) -> None:
        assert 2 * self.window <= self.fit(0.005) < 100 * self.window

    def test_what_is_within_the_noise_is_left_after_one_window(self) -> None:
        assert self.fit(10.0) == self.window

    def test_precise_measurements_are_worked_at_longer(self) -> None:
        assert self.fit(0.001) > self.fit(0.1)

    def test_never_after_more_generations_than_allowed(self) -> None:
        assert self.fit(0.005, generations=self.window + 1) == self.window + 1
        assert self.fit(0.005, generations=1) == 1

    @property
    def window(self) -> int:
        return search.TRIES_PER_CELL * ROWS * len(NAMES) // 40


class TestReports:
    def test_progress_never_goes_back_and_ends_at_the_end(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(search, "WORK_PER_CALL", 40 * 100 * 30)
        problem = new_problem("marginals", 1)
        reports: list[tuple[int, int]] = []
        new_search().fit(
            problem.queries, problem.values, problem.noise, lambda *report: reports.append(report)
        )
        done = [report[0] for report in reports]
        assert done[0] == 0 and done == sorted(done) and reports[-1] == (20_000, 20_000)
        assert max(np.diff(done[:-1])) <= 150

    def test_how_often_it_reports_changes_no_row(self, monkeypatch: pytest.MonkeyPatch) -> None:
        problem = new_problem("everything", 3)
        tables = []
        for work in (1, search.WORK_PER_CALL):
            monkeypatch.setattr(search, "WORK_PER_CALL", work)
            found = new_search(generations=200)
            found.fit(problem.queries, problem.values, problem.noise)
            tables.append(matrix(found))
        np.testing.assert_array_equal(tables[0], tables[1])

    def test_whoever_is_told_may_end_it(self) -> None:
        class Cancelled(Exception): ...

        def cancel(done: int, total: int) -> None:
            raise Cancelled

        problem = new_problem("marginals", 1)
        with pytest.raises(Cancelled):
            new_search().fit(problem.queries, problem.values, problem.noise, cancel)


def test_columns_that_nothing_was_measured_of_stay_uniform() -> None:
    queries = compile_workload([Marginals(type="marginals", attributes=[["sex"]])], SCHEMA)
    found = new_search()
    before = matrix(found)
    found.fit(queries, np.array([0.2, 0.8]), np.full(2, 0.01))
    np.testing.assert_array_equal(matrix(found)[:, [0, 2, 3, 4, 5]], before[:, [0, 2, 3, 4, 5]])


def test_a_predicate_alone_is_met() -> None:
    queries = compile_workload(
        [Prefixes(type="prefixes", count=50, seed=3, categorical=1, numeric=1)], SCHEMA
    )
    noise = np.full(50, np.inf)
    noise[11] = 0.01
    found = new_search()
    found.fit(queries, np.full(50, 0.4), noise)
    assert count(queries, matrix(found))[11] / ROWS == pytest.approx(0.4, abs=0.011)
