"""Exact noise and its price, both from the same OpenDP measurement, so they cannot drift apart.

Only whole numbers enter, only whole numbers leave, and no generator of numpy, torch or `random`
is involved. Prices are units of 1e-12 rho, rounded up.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import opendp.prelude as dp
from numpy.typing import NDArray

from synth.spec.budget import UNITS_PER_RHO

FIXED_POINT = 2**20
"""Scores are whole multiples of 1/FIXED_POINT of a row, so that only integers meet the noise."""

Counts = NDArray[np.int64]

dp.enable_features("contrib")
_VECTOR = dp.vector_domain(dp.atom_domain(T="i64"))
_ZCDP = dp.zero_concentrated_divergence()


@dataclass(frozen=True)
class Sampler:
    """Noise of one scale: what it costs and how it is drawn. It keeps nothing between draws."""

    scale: float
    price: int
    release: Callable[[Counts], Counts]


@lru_cache
def gaussian(l2_squared: int, *, budget: int) -> Sampler:
    """Discrete Gaussian noise, as little as the budget allows: rho = D2^2 / (2 sigma^2)."""
    if l2_squared == 0:  # no unit can move the counts: they are public
        return Sampler(scale=0.0, price=0, release=lambda counts: counts)
    sensitivity = math.nextafter(math.sqrt(l2_squared), math.inf)

    def at(sigma: float) -> Sampler:
        measurement = dp.m.make_gaussian(_VECTOR, dp.l2_distance(T="f64"), sigma)
        return Sampler(
            sigma, _units(measurement.map(sensitivity)), lambda c: _array(measurement(c))
        )

    return _cheapest(at, math.sqrt(l2_squared / (2 * _rho(budget))), budget)


@lru_cache
def noisy_top(linf: int, k: int, *, budget: int) -> Sampler:
    """The k largest scores under Gumbel noise (exponential mechanism): rho = k Du^2 / (2 b^2)."""

    def at(scale: float) -> Sampler:
        # Absolute errors are not monotone in the data, so the metric must not claim it.
        measurement = dp.m.make_noisy_top_k(_VECTOR, dp.linf_distance(T="i64"), _ZCDP, k, scale)
        return Sampler(scale, _units(measurement.map(linf)), lambda c: _array(measurement(c)))

    return _cheapest(at, linf * math.sqrt(k / (2 * _rho(budget))), budget)


def gumbel_draws(linf: int, scale: float, draws: int) -> Sampler:
    """Independent exponential-mechanism draws at a given scale: rho = draws * Du^2 / (2 b^2)."""
    measurement = dp.m.make_noisy_max(_VECTOR, dp.linf_distance(T="i64"), _ZCDP, scale)
    price = draws * _units(measurement.map(linf))
    return Sampler(scale, price, lambda c: _array([measurement(c) for _ in range(draws)]))


def _cheapest(at: Callable[[float], Sampler], scale: float, budget: int) -> Sampler:
    """The sampler at the analytic scale, raised by rounding steps until its own price fits."""
    for _ in range(100):
        if (sampler := at(scale)).price <= budget:
            return sampler
        scale *= 1 + 2**-40
    raise AssertionError("OpenDP's price and ours differ by more than rounding")


def _rho(budget: int) -> float:
    if budget <= 0:
        raise ValueError(f"an operation needs a positive budget, not {budget} units")
    return budget / UNITS_PER_RHO


def _units(rho: float) -> int:
    return math.ceil(Fraction(rho) * UNITS_PER_RHO)


def _array(values: list[int]) -> Counts:
    return np.asarray(values, dtype=np.int64)
