"""Optimal shares, against a general convex solver and known optima."""

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from synth.planning import shares as shares_module
from synth.planning.precision import Design, Measurable, Names, design_of, subsets
from synth.planning.shares import LEAST, SHARE_TOLERANCE, minimise_largest, minimise_sum

SIZES = {"a": 2, "b": 3, "c": 9, "d": 5}
TRIPLES: list[Names] = list(combinations(SIZES, 3))


def cells(names: Names) -> int:
    return math.prod(SIZES[name] for name in names)


def design(asked: Sequence[Names], measured: Sequence[Names], rows: float = math.inf) -> Design:
    found = [Measurable(names, 2) for names in measured]
    return design_of(asked, found, SIZES, rows=rows, consistent=True)


def total(design: Design, weights: Sequence[float], shares: Sequence[float]) -> float:
    return float(np.dot(weights, design.variances(design.precisions(shares))))


def largest(design: Design, weights: Sequence[float], shares: Sequence[float]) -> float:
    return float(np.max(np.multiply(weights, design.variances(design.precisions(shares)))))


def solved(error: Callable[[Any], float], count: int) -> float:
    """The smallest error over shares, by sequential least squares."""
    found = minimize(
        error,
        np.full(count, 1 / count),
        method="SLSQP",
        bounds=[(1e-9, 1)] * count,
        constraints={"type": "eq", "fun": lambda shares: shares.sum() - 1},
        options={"ftol": 1e-12, "maxiter": 2000},
    )
    return float(error(found.x / found.x.sum()))


@pytest.mark.parametrize("rows", [math.inf, 0.01])
@pytest.mark.parametrize("weights", [[1.0] * 4, [1.0, 30.0, 0.1, 2.0]])
def test_the_sum_of_variances_is_as_small_as_a_general_solver_finds(
    weights: list[float], rows: float
) -> None:
    asked = design(TRIPLES, TRIPLES, rows)
    weights = [weight * cells(names) for weight, names in zip(weights, TRIPLES, strict=True)]
    shares = minimise_sum(asked, weights, [1.0] * 4)
    best = solved(lambda found: total(asked, weights, found), 4)
    assert sum(shares) == pytest.approx(1)
    assert total(asked, weights, shares) <= best * (1 + 2 * SHARE_TOLERANCE)


@pytest.mark.parametrize("weights", [[1.0] * 4, [1.0, 30.0, 0.1, 2.0]])
def test_the_largest_variance_is_as_small_as_a_general_solver_finds(weights: list[float]) -> None:
    asked = design(TRIPLES, TRIPLES)
    shares = minimise_largest(asked, weights, [1.0] * 4)
    power = 200  # a smooth function close to the maximum

    def smooth(found: Any) -> float:
        variances = np.multiply(weights, asked.variances(asked.precisions(found)))
        return float(
            variances.max() * np.mean((variances / variances.max()) ** power) ** (1 / power)
        )

    best = solved(smooth, 4)
    assert largest(asked, weights, shares) <= best * (
        1 + 4 ** (1 / power) - 1 + 2 * SHARE_TOLERANCE
    )
    assert largest(asked, weights, shares) < largest(asked, weights, [0.25] * 4)


@pytest.mark.parametrize("optimise", [minimise_sum, minimise_largest])
@given(st.data())
def test_marginals_below_the_workload_need_no_share(optimise: Any, data: st.DataObject) -> None:
    """Adding them as candidates does not lower the error."""
    known = [names for names in subsets(tuple(SIZES)) if names]
    asked = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=5, unique=True))
    weights = data.draw(st.lists(st.sampled_from([0.1, 1.0, 20.0]), min_size=5, max_size=5))
    below = list(dict.fromkeys(part for names in asked for part in subsets(names) if part))
    error = total if optimise is minimise_sum else largest
    found = []
    for measured in (asked, below):
        given_design = design(asked, measured)
        shares = optimise(given_design, weights[: len(asked)], [1.0] * len(measured))
        found.append(error(given_design, weights[: len(asked)], shares))
    # Steps stop near the optimum, and every measurement keeps a small share.
    assert found[0] <= found[1] * (1 + LEAST + 3 * SHARE_TOLERANCE)


def test_disjoint_marginals_get_the_root_of_their_weight() -> None:
    asked: list[Names] = [("a",), ("b",)]
    weights = [4.0 / (1 - 1 / 2), 1.0 / (1 - 1 / 3)]  # the factor of the only noisy part
    assert minimise_sum(design(asked, asked), weights, [1, 1]) == pytest.approx(
        [2 / 3, 1 / 3], 1e-3
    )
    assert minimise_largest(design(asked, asked), weights, [1, 1]) == pytest.approx(
        [0.8, 0.2], rel=1e-3
    )


def test_every_measurement_keeps_a_share_and_a_large_workload_gets_few_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Names] = [("a", "b", "c"), ("a",)]
    known = design(asked, asked)
    assert min(minimise_sum(known, [1e6, 1e-6], [1, 1])) == pytest.approx(LEAST / 2, rel=0.02)
    assert min(minimise_largest(known, [1e6, 1e-6], [1, 1])) == pytest.approx(LEAST / 2, rel=0.02)
    monkeypatch.setattr(shares_module, "MAX_SHARE_WORK", 1)
    assert minimise_sum(known, [1, 1], [1, 1]) == pytest.approx([0.5, 0.5], abs=0.5)
