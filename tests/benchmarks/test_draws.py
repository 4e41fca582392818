"""Intervals from several draws: the rule on known numbers, and its coverage on small tables."""

import numpy as np
import pytest

from benchmarks.draws.problems import PROBLEMS
from benchmarks.draws.regression import (
    Drawn,
    Estimate,
    combined,
    from_one_model,
    linear,
    logistic,
    naive,
    of_the_table,
)
from benchmarks.draws.simulation import simulate

RELEASES = 100


def estimate(coefficient: float, variance: float) -> Estimate:
    return Estimate(np.array([coefficient]), np.array([variance]))


def test_the_rule_is_the_documented_one() -> None:
    """U = 0.04 * 2 = 0.08; D = (0.1^2 + 0.3^2 + 0.1^2) / 3; nu = 3 (1 + U/D)^2 = 30.4."""
    others = [estimate(value, 1.0) for value in (1.1, 1.3, 0.9)]
    drawn = Drawn(estimate(1.0, 0.04), others, [], rows_ratio=2.0)
    within, between = 0.08, 0.11 / 3
    assert drawn.sampling[0] == pytest.approx(within)
    assert drawn.squares[0] == pytest.approx(between)
    # Student's quantiles are 2.0412 at 30.4 degrees of freedom, and 3.1824 at 3.
    assert combined(drawn).half[0] == pytest.approx(2.0412 * np.sqrt(within + between), rel=1e-3)
    assert of_the_table(drawn).half[0] == pytest.approx(3.1824 * np.sqrt(between), rel=1e-4)
    assert naive(drawn).half[0] == pytest.approx(1.95996 * 0.2, rel=1e-5)


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name != "adult"])
def test_generated_tables_have_their_coefficients(name: str) -> None:
    """The seed is fixed; all coefficients are within four standard errors."""
    problem = PROBLEMS[name]
    columns = problem.draw(200_000, np.random.default_rng(0))
    assert all(columns[name].max() < size for name, size in problem.sizes.items())
    found = problem.estimate(columns)
    assert problem.fit in (linear, logistic)
    assert np.abs((found.coefficients - problem.truth()) / np.sqrt(found.variances)).max() < 4


@pytest.mark.slow
@pytest.mark.statistical
def test_intervals_from_several_draws_cover_and_others_do_not() -> None:
    """One coefficient in 100 releases, of which intervals with a true coverage of 95% cover fewer than 81
    with a probability of 1e-7. Intervals of software, or from one model's rows, cover in about 45
    of them (make bench-draws); 80 or more have a probability below 1e-10.
    """
    problem = PROBLEMS["linear"]
    found = [
        simulate(
            problem,
            {"name": "private_gsd", "mode": "one_shot", "rows": 1000},
            epsilon=1.0,
            rows=5_000,
            released=5_000,
            draws=5,
            seed=seed,
        )
        for seed in range(RELEASES)
    ]
    assert all(each.all_pairs for each in found)
    slope = 3  # that of x

    def covered(rule: object, *, of_table: bool = False) -> int:
        assert callable(rule)
        return sum(
            bool(rule(each.drawn).covers(each.of_table if of_table else each.truth)[slope])
            for each in found
        )

    assert covered(combined) >= 81
    assert covered(of_the_table, of_table=True) >= 81
    assert covered(naive) < 80 and covered(from_one_model) < 80
