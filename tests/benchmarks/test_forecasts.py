"""Forecasts beside measured releases, on a small table that they were not fitted to."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest

from benchmarks.comparison.job import count_truth, run_job
from benchmarks.comparison.outcomes import Task, append
from benchmarks.comparison.problem import Comparison, Problem
from benchmarks.products.sets import named
from benchmarks.quality.fitting import START, Measured, fitted
from benchmarks.quality.releases import measured
from benchmarks.quality.tables import generated
from synth.planning.constants import Constants


def held_out() -> Problem:
    data = generated((2, 3, 4, 6, 8), 3_000, classes=3, seed=5)
    return Problem(data, named(list(combinations(data.domain.names, 2))))


@pytest.mark.random
def test_forecasts_of_a_held_out_table_are_near(tmp_path: Path) -> None:
    """Sums over 10 tables hardly vary, so a factor of 3 would be missed only by a wrong forecast."""
    problem, results = held_out(), tmp_path / "results.jsonl"
    comparison = Comparison("held-out", "", ("relaxed_projection",), lambda: problem)
    truth = count_truth(problem)
    for epsilon in (0.3, 3.0):
        outcome = run_job(
            problem,
            truth,
            mechanism="relaxed_projection",
            parameters={},
            epsilon=epsilon,
            seed=0,
            code="now",
        )
        append(results, Task("held-out", "relaxed_projection", epsilon, 0), outcome)
    found = measured([comparison], [results])
    assert len(found) == 2
    for release in found:
        for field in ("mean_absolute_error", "mean_total_variation", "max_error"):
            ratio = getattr(release.stated, field) / getattr(release.errors, field)
            assert 1 / 3 < ratio < 3
    # A fit to these releases forecasts them better than the start.
    own = fitted(found)
    assert own.fits.keys() == {"relaxed_projection"}
    assert off(found, own) <= off(found, START)


def off(found: Sequence[Measured], constants: Constants) -> float:
    """The summed factors by which the mean total variation is missed."""
    ratios = [
        each.forecast(constants).mean_absolute_error / each.errors.mean_absolute_error
        for each in found
    ]
    return sum(max(ratio, 1 / ratio) for ratio in ratios)
