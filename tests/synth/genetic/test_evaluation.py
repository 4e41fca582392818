"""The effect of one changed cell on the loss, compared with a full recount."""

import numpy as np
import pytest
from numpy.typing import NDArray

from scrim.spec.workload.conditions import HasCode, InInterval, IsMissing
from synth.genetic.evaluation import Evaluation, evaluate
from synth.genetic.measured_features import MeasuredFeatures, measured_features_of
from synth.genetic.query_counts import loss_of
from synth.queries import QuerySet
from synth.queries.features import Contribution, HalfspaceFeatures
from tests.synth.genetic.problems import (
    NAMES,
    SCHEMA,
    WORKLOADS,
    Floats,
    Problem,
    changed,
    count,
    keep_all,
    new_problem,
    random_candidates,
    random_rows,
    score_all,
)

ROWS = 40


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


@pytest.mark.parametrize("kind", WORKLOADS)
@pytest.mark.parametrize("unmeasured", [0.0, 0.5])
class TestEveryKind:
    def test_the_loss_is_that_of_the_counts(
        self, kind: str, unmeasured: float, rng: np.random.Generator
    ) -> None:
        problem = new_problem(kind, 1, unmeasured=unmeasured)
        rows = random_rows(ROWS, rng)
        assert loss_of(problem.evaluate(rows).query_counts) == pytest.approx(
            problem.loss(rows), rel=1e-9
        )

    def test_a_score_is_the_difference_of_two_losses(
        self, kind: str, unmeasured: float, rng: np.random.Generator
    ) -> None:
        problem = new_problem(kind, 2, unmeasured=unmeasured)
        rows = random_rows(ROWS, rng)
        candidates = random_candidates(rows, 150, rng)
        best = problem.evaluate(rows)
        score_all(best, candidates)
        before = problem.loss(rows)
        for index in range(150):
            other = changed(rows, candidates, index)
            if np.array_equal(other, rows, equal_nan=True):
                assert candidates.score[index] == np.inf
            else:
                expected = problem.loss(other) - before
                assert candidates.score[index] == pytest.approx(expected, rel=1e-6, abs=1e-6)
        np.testing.assert_array_equal(best.values, rows)

    def test_nothing_drifts_over_thousands_of_changes(
        self, kind: str, unmeasured: float, rng: np.random.Generator
    ) -> None:
        problem = new_problem(kind, 3, unmeasured=unmeasured)
        rows = random_rows(ROWS, rng)
        best = problem.evaluate(rows)
        candidates = random_candidates(rows, 5000, rng)
        keep_all(best, candidates)
        for index in range(5000):
            rows = changed(rows, candidates, index)
        np.testing.assert_array_equal(best.values, rows)
        assert_equal(best, problem.evaluate(rows))
        assert loss_of(best.query_counts) == pytest.approx(problem.loss(rows), rel=1e-9)


def assert_equal(found: Evaluation, expected: Evaluation) -> None:
    """Compare everything derived from the rows, bit by bit."""
    np.testing.assert_array_equal(found.places, expected.places)
    np.testing.assert_array_equal(found.tables.codes, expected.tables.codes)
    np.testing.assert_array_equal(found.halfspaces.sums, expected.halfspaces.sums)
    np.testing.assert_array_equal(found.query_counts.counts, expected.query_counts.counts)
    np.testing.assert_array_equal(found.query_counts.gains, expected.query_counts.gains)


class TestParts:
    def test_only_tables_and_predicates_that_were_measured(self) -> None:
        problem = new_problem("everything", 1)
        noise = np.full(problem.queries.size, np.inf)
        sizes = {block.name: block.size for block in problem.queries.blocks}
        starts = dict(zip(sizes, problem.queries.offsets, strict=False))
        prefixes = next(name for name in sizes if name.startswith("prefixes"))
        halfspaces = next(name for name in sizes if name.startswith("halfspaces"))
        wanted = [starts["colour,sex"] + 3, starts[prefixes] + 7, starts[halfspaces] + 9]
        noise[wanted] = 0.1
        features = measured_features_of(problem.queries, problem.values, noise, SCHEMA)
        assert [[axis.name for axis in table] for table in features.tables] == [["colour", "sex"]]
        assert len(features.conjunctions) == 1
        assert [len(block.thresholds) for block in features.halfspaces] == [1]
        measured = np.flatnonzero(np.isfinite(features.noise))
        np.testing.assert_array_equal(measured, [3, 8, 9])
        np.testing.assert_allclose(features.values[measured], problem.values[wanted])
        rows = random_rows(ROWS, np.random.default_rng(0))
        counts = evaluate(rows, features, SCHEMA).query_counts.counts
        np.testing.assert_array_equal(counts[measured], count(problem.queries, rows)[wanted])

    def test_a_value_where_nothing_was_measured_is_not_looked_at(self) -> None:
        problem = new_problem("marginals", 1, unmeasured=0.5)
        values = np.where(np.isfinite(problem.noise), problem.values, np.nan)
        blind = Problem(problem.queries, values, problem.noise)
        rows = random_rows(ROWS, np.random.default_rng(0))
        found, expected = blind.evaluate(rows).query_counts, problem.evaluate(rows).query_counts
        np.testing.assert_array_equal(found.gains, expected.gains)

    def test_nothing_at_all(self) -> None:
        empty = measured_features_of(QuerySet([]), np.zeros(0), np.zeros(0), SCHEMA)
        rows = random_rows(ROWS, np.random.default_rng(0))
        candidates = random_candidates(rows, 10, np.random.default_rng(1))
        score_all(evaluate(rows, empty, SCHEMA), candidates)
        assert set(candidates.score) <= {0.0, np.inf}


class TestConjunctions:
    """Edges of intervals, as scrim/spec/workload/conditions.py defines them."""

    @pytest.mark.parametrize(
        ("conjunction", "matching"),
        [
            ([InInterval("age", 10, 20)], [10, 19]),
            ([InInterval("age", 20, 99)], [20, 99]),
            ([InInterval("age", 0, 99)], [0, 10, 19, 20, 99]),
            ([InInterval("age", 0, 10)], [0]),
            ([IsMissing("age")], [np.nan]),
            ([InInterval("age", 0, 20), InInterval("age", 10, 99)], [10, 19]),
            ([InInterval("age", 0, 99), IsMissing("age")], []),
            ([InInterval("age", 10, 20), HasCode("sex", 1)], []),
            ([HasCode("sex", 0)], [0, 10, 19, 20, 99, np.nan]),
        ],
        ids=str,
    )
    def test_half_open_and_closed_at_the_upper_bound(
        self, conjunction: list[HasCode | InInterval | IsMissing], matching: list[float]
    ) -> None:
        ages = np.array([0, 10, 19, 20, 99, np.nan])
        features = MeasuredFeatures([], [tuple(conjunction)], [], np.array([0.5]), np.array([0.1]))
        best = evaluate(rows_of_age(ages), features, SCHEMA)
        assert best.query_counts.counts.tolist() == [len(matching)]
        for age in ages:
            alone = evaluate(rows_of_age(np.array([age])), features, SCHEMA).query_counts.counts[0]
            assert alone == any(np.array_equal(age, each, equal_nan=True) for each in matching)


def rows_of_age(ages: Floats) -> Floats:
    rows = np.zeros((len(ages), len(NAMES)))
    rows[:, NAMES.index("age")] = ages
    return rows


class TestHalfspaces:
    def test_a_sum_at_the_threshold_is_inside(self) -> None:
        """Small whole weights, so that sums meet thresholds all the time."""
        rng = np.random.default_rng(4)
        planes = 30
        small = HalfspaceFeatures(
            {
                "colour": categories(rng.integers(-1, 2, (4, planes))),
                "sex": categories(rng.integers(-1, 2, (2, planes))),
                "age": Contribution(
                    lower=0.0,
                    span=99.0,
                    slope=np.zeros(planes, np.int64),
                    offset=rng.integers(-1, 2, (1, planes)),
                ),
            },
            rng.integers(-1, 2, planes),
        )
        features = MeasuredFeatures(
            [], [], [small], rng.uniform(0, 1, planes), np.full(planes, 0.1)
        )
        rows = random_rows(ROWS, rng)
        best = evaluate(rows.copy(), features, SCHEMA)
        assert (best.halfspaces.sums == best.halfspaces.thresholds).mean() > 0.2
        candidates = random_candidates(rows, 200, rng)
        score_all(best, candidates)
        for index in range(200):
            other = evaluate(changed(rows, candidates, index), features, SCHEMA)
            if candidates.score[index] < np.inf:
                expected = loss_of(other.query_counts) - loss_of(best.query_counts)
                assert candidates.score[index] == pytest.approx(expected, rel=1e-6, abs=1e-6)

    def test_blocks_stand_beside_each_other(self) -> None:
        """A column without a weight in a block adds nothing to its sums."""
        two = HalfspaceFeatures({"sex": categories(np.array([[0, 5], [1, 7]]))}, np.array([0, 6]))
        one = HalfspaceFeatures(
            {"colour": categories(np.array([[0], [1], [2], [3]]))}, np.array([1])
        )
        features = MeasuredFeatures([], [], [two, one], np.zeros(3), np.full(3, 0.1))
        rows = np.zeros((4, len(NAMES)))
        rows[:, 0], rows[:, 1] = [0, 1, 2, 3], [0, 1, 1, 1]
        best = evaluate(rows.copy(), features, SCHEMA)
        assert best.query_counts.counts.tolist() == [1, 1, 2]
        assert best.halfspaces.sums.tolist() == [[0, 5, 0], [1, 7, 1], [1, 7, 2], [1, 7, 3]]


def categories(offset: NDArray[np.int64]) -> Contribution:
    return Contribution(lower=0.0, span=1.0, slope=None, offset=offset)
