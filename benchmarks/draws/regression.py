"""Linear and logistic regression, and rules that combine the estimates of several sets of rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """Coefficients, and the sampling variance of each (sandwich)."""

    coefficients: Floats
    variances: Floats


@dataclass(frozen=True)
class Interval:
    """Nominal 95% intervals."""

    centre: Floats
    half: Floats

    def covers(self, truth: Floats) -> NDArray[np.bool_]:
        """Whether each interval contains its coefficient."""
        return np.asarray(np.abs(self.centre - truth) <= self.half)


def linear(design: Floats, outcome: Floats) -> Estimate:
    """Least squares."""
    inverse = _inverse(design.T @ design)
    coefficients: Floats = inverse @ design.T @ outcome
    return _sandwich(coefficients, inverse, design, outcome - design @ coefficients)


def logistic(design: Floats, outcome: Floats) -> Estimate:
    """Maximum likelihood by Newton's method."""
    coefficients: Floats = np.zeros(design.shape[1])
    for _ in range(30):
        expected = 1 / (1 + np.exp(-design @ coefficients))
        weights = expected * (1 - expected)
        inverse = _inverse(design.T @ (design * weights[:, None]))
        step = inverse @ design.T @ (outcome - expected)
        coefficients += step
        if np.abs(step).max() < 1e-9:
            break
    return _sandwich(coefficients, inverse, design, outcome - expected)


def _inverse(matrix: Floats) -> Floats:
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def _sandwich(coefficients: Floats, inverse: Floats, design: Floats, residuals: Floats) -> Estimate:
    middle = (design * residuals[:, None] ** 2).T @ design
    return Estimate(coefficients, np.diag(inverse @ middle @ inverse))


@dataclass(frozen=True)
class Drawn:
    """The estimates of one release."""

    first: Estimate
    """From `synthetic.csv`."""
    others: Sequence[Estimate]
    """From `synthetic_1.csv` and so on."""
    same_model: Sequence[Estimate]
    """From further rows of the released model, for comparison."""
    rows_ratio: float
    """Released rows for each estimated row of the private table."""

    @property
    def sampling(self) -> Floats:
        """U: the variance that a table of the private table's size has."""
        return self.first.variances * self.rows_ratio

    @property
    def squares(self) -> Floats:
        """D: the mean squared distance of the further sets from the first."""
        found = np.array([each.coefficients for each in self.others])
        return np.asarray(((found - self.first.coefficients) ** 2).mean(axis=0))


def combined(drawn: Drawn) -> Interval:
    """The rule of ADR 23 for the population: U + D, with m (1 + U/D)^2 degrees of freedom."""
    number, within, between = len(drawn.others), drawn.sampling, drawn.squares
    freedom = number * (1 + within / between) ** 2
    return _interval(drawn, within + between, freedom)


def of_the_table(drawn: Drawn) -> Interval:
    """The rule for the private table's own coefficient: D, with m degrees of freedom."""
    return _interval(drawn, drawn.squares, np.full(len(drawn.squares), len(drawn.others)))


def naive(drawn: Drawn) -> Interval:
    """What software states for the synthetic rows."""
    return _interval(drawn, drawn.first.variances, np.inf)


def from_one_model(drawn: Drawn) -> Interval:
    """The same as `combined`, with further rows of the released model."""
    found = np.array([each.coefficients for each in drawn.same_model])
    between = ((found - drawn.first.coefficients) ** 2).mean(axis=0)
    return _interval(drawn, drawn.sampling + between, np.inf)


def without_bias(drawn: Drawn) -> Interval:
    """U + B, with the variance B of the further sets about their own mean."""
    found = np.array([each.coefficients for each in drawn.others])
    between = found.var(axis=0, ddof=1)
    freedom = (len(found) - 1) * (1 + drawn.sampling / between) ** 2
    return _interval(drawn, drawn.sampling + between, freedom)


def _interval(drawn: Drawn, variance: Floats, freedom: Floats | float) -> Interval:
    return Interval(drawn.first.coefficients, student.ppf(0.975, freedom) * np.sqrt(variance))


Rule = Callable[[Drawn], Interval]
