"""Why critics are drawn from a finite class: the thesis's private oracle, ODO-1, is not private.

ODO-1 (algorithm 4 of the thesis on QueryGAN) outputs the theta in [-1, 1] that minimises

    sum over rows x of softplus(theta x)  -  n/2 (softplus(theta g) + softplus(-theta g))  -  noise * theta

for a generator that puts out g and -g, with noise from Laplace(2 / epsilon). The proof assumes that the
loss is convex, so that each theta belongs to one noise. It is a difference of convex functions. Two tables
that differ in one row: without it the loss is concave, and no noise whatever makes an inner theta best;
with it the loss is convex, and some do. An event of probability zero distinguishes the tables.
"""

import math

import numpy as np
import pytest
from scipy.special import expit

ROWS = 100
GENERATED = 1 / (2 * math.sqrt(ROWS))
THETA = np.linspace(-1, 1, 2001)
WITHOUT, WITH = 0.0, 1.0
"""The row in which the tables differ; all others are zero, and softplus(0) is a constant."""


def loss(row: float, theta: np.ndarray) -> np.ndarray:
    """The loss without noise, up to a constant."""
    generated = np.logaddexp(0, theta * GENERATED) + np.logaddexp(0, -theta * GENERATED)
    return np.logaddexp(0, theta * row) - ROWS / 2 * generated


def slope(row: float, theta: float) -> float:
    """Its derivative."""
    generated = GENERATED * (expit(theta * GENERATED) - expit(-theta * GENERATED))
    return float(row * expit(theta * row) - ROWS / 2 * generated)


def curvature(row: float, theta: np.ndarray) -> np.ndarray:
    """Its second derivative."""

    def of(x: float) -> np.ndarray:
        found: np.ndarray = x**2 * expit(theta * x) * expit(-theta * x)
        return found

    difference: np.ndarray = of(row) - ROWS * of(GENERATED)
    return difference


def inner_probability(row: float, epsilon: float) -> float:
    """The probability of an output strictly between -1 and 1, exactly."""
    if (curvature(row, THETA) <= 0).all():
        return (
            0.0  # a concave function on an interval is smallest at an end, whatever is added to it
        )
    assert (curvature(row, THETA) > 0).all()
    # Convex: the best theta is inside exactly if the noise equals the slope somewhere inside.
    low, high = slope(row, -1.0), slope(row, 1.0)
    return laplace_cdf(high, 2 / epsilon) - laplace_cdf(low, 2 / epsilon)


def laplace_cdf(x: float, scale: float) -> float:
    tail = math.exp(-abs(x) / scale) / 2
    return tail if x < 0 else 1 - tail


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 10.0])
def test_odo_1_tells_neighbours_apart_at_every_noise_level(epsilon: float) -> None:
    assert inner_probability(WITHOUT, epsilon) == 0
    assert inner_probability(WITH, epsilon) > 0.06 * min(1.0, epsilon)


def test_no_epsilon_covers_odo_1() -> None:
    """It claims epsilon = 1 for one round; (epsilon', delta) fails for every epsilon' and delta < 0.06."""
    p, q = inner_probability(WITH, 1.0), inner_probability(WITHOUT, 1.0)
    for claimed in (1.0, 10.0, 1000.0):
        log_q = -math.inf if q == 0 else math.log(q)
        assert p - math.exp(claimed + log_q) > 0.06


def test_the_exact_probabilities_are_those_of_the_minimiser() -> None:
    """The formula against the algorithm itself: minimise on a grid, for noise at equal quantiles."""
    quantiles = (np.arange(4000) + 0.5) / 4000
    noise = -2.0 * np.sign(quantiles - 0.5) * np.log1p(-2 * np.abs(quantiles - 0.5))
    for row in (WITHOUT, WITH):
        base = loss(row, THETA)
        best = np.array([int(np.argmin(base - each * THETA)) for each in noise])
        inner = np.count_nonzero((best > 0) & (best < len(THETA) - 1)) / len(noise)
        assert inner == pytest.approx(inner_probability(row, 1.0), abs=1e-3)
