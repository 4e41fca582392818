"""Exact noise and its price, both from the same OpenDP measurement, so that they always agree.

Inputs and outputs are integers, and no random generator of numpy, torch or `random` is used. Prices are
units of 1e-12 rho, rounded up.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

# Not opendp.prelude: it imports scikit-learn and scipy.stats, which take longer than a small release.
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_noisy_max
from opendp.measures import zero_concentrated_divergence
from opendp.metrics import l2_distance, linf_distance
from opendp.mod import enable_features

from scrim.spec.budget import UNITS_PER_RHO
from synth.planning.scale import gaussian_scale

FIXED_POINT = 2**20
"""Scores are integer multiples of 1/FIXED_POINT of a row, so that noise is added only to integers."""

COPIES = 2
"""Added to a score's sensitivity because candidates are copied (docs/privacy.md, section 2.4)."""
LN_2 = Fraction(Decimal(2).ln(Context(prec=60)))

Counts = NDArray[np.int64]

enable_features("contrib")
_VECTOR = vector_domain(atom_domain(T="i64"))
_ZCDP = zero_concentrated_divergence()


@dataclass(frozen=True)
class Sampler:
    """Noise of one scale: its price and how it is drawn. It has no state between draws."""

    scale: float
    price: int
    release: Callable[[Counts], Counts]


@lru_cache
def gaussian(l2_squared: int, *, budget: int) -> Sampler:
    """Discrete Gaussian noise at the scale that a plan computes: rho = D2^2 / (2 sigma^2)."""
    if l2_squared == 0:  # no unit can change the counts: they are public
        return Sampler(scale=0.0, price=0, release=lambda counts: counts)
    sensitivity = math.nextafter(math.sqrt(l2_squared), math.inf)
    sigma = gaussian_scale(l2_squared, budget)
    measurement = make_gaussian(_VECTOR, l2_distance(T="f64"), sigma)
    sampler = Sampler(sigma, _units(measurement.map(sensitivity)), lambda c: _array(measurement(c)))
    # The exact curve of a release is that of the planned scale (docs/privacy.md, section 2.9).
    assert sampler.price <= budget, "OpenDP's price and ours differ by more than rounding"
    return sampler


@lru_cache
def noisy_top(linf: int, k: int, *, budget: int) -> Sampler:
    """The k largest scores under Gumbel noise (exponential mechanism): rho = k Du^2 / (2 b^2).

    They are drawn one after another, each among those that are left, which has the same distribution as
    the k largest (docs/privacy.md, section 2.3).
    """

    def at(scale: float) -> Sampler:
        draw, price = _exponential(linf, scale)

        def release(scores: Counts) -> Counts:
            left, drawn = np.arange(len(scores)), []
            for _ in range(min(k, len(scores))):
                place = draw(scores[left], 1)[0]
                drawn.append(left[place])
                left = np.delete(left, place)
            return _array(drawn)

        return Sampler(scale, k * price, release)

    return _cheapest(at, (linf + COPIES) / math.sqrt(2 * _rho(budget // k)), budget)


def gumbel_draws(linf: int, scale: float, draws: int) -> Sampler:
    """Independent exponential-mechanism draws at a given scale: rho = draws * Du^2 / (2 b^2)."""
    draw, price = _exponential(linf, scale)
    return Sampler(scale, draws * price, lambda scores: draw(scores, draws))


def _exponential(linf: int, scale: float) -> tuple[Callable[[Counts, int], Counts], int]:
    """Independent draws of the exponential mechanism, and the price of one of them."""
    # Absolute errors are not monotone in the data, so the metric must not be monotone either.
    measurement = make_noisy_max(_VECTOR, linf_distance(T="i64"), _ZCDP, scale)

    def draw(scores: Counts, draws: int) -> Counts:
        candidates, copied = copies(scores, scale)
        return candidates[[measurement(copied) for _ in range(draws)]]

    return draw, _units(measurement.map(linf + COPIES if linf else 0))


def copies(scores: Counts, scale: float) -> tuple[Counts, Counts]:
    """Copy likely candidates, so that all copies are about equally likely: their candidates and scores.

    OpenDP proposes candidates uniformly and accepts one with probability exp((score - largest) / scale).
    If few are likely, that takes as many proposals as there are candidates. 2^k copies, each with a
    score that is scale * k ln 2 lower, are together as likely as their candidate was.
    """
    likelihood = np.exp((scores - scores.max()) / scale)
    doublings = np.log2(np.maximum(1, likelihood / likelihood.mean())).astype(np.int64)
    lower = [math.floor(k * LN_2 * Fraction(scale)) for k in range(doublings.max() + 1)]
    return (
        np.repeat(np.arange(len(scores)), 1 << doublings),
        np.repeat(scores - np.array(lower, np.int64)[doublings], 1 << doublings),
    )


def _cheapest(at: Callable[[float], Sampler], scale: float, budget: int) -> Sampler:
    """The sampler at the analytic scale, increased by rounding steps until its price fits the budget."""
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
