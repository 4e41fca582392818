"""Shares of a budget that minimise the error of answers, by multiplicative steps.

The weighted sum of variances is convex in the shares. Its optimum is found by the multiplicative
algorithm of optimal designs (Silvey, Titterington, Torsney 1978): each share is multiplied by the square
root of its gradient. The largest variance is minimised as a game: the weights of the sum move towards the
answers with the largest variances. The gradient bounds the distance from the optimum, so both stop when
they are near it.
"""

import math
from collections.abc import Sequence
from operator import mul

from synth.planning.precision import Design

SHARE_TOLERANCE = 2e-4
"""Distance from the optimal variance, relative to it, at which the steps stop."""
MAX_STEPS = 200
"""Most steps, also for small workloads."""
MAX_SHARE_WORK = 2_000_000
"""Most terms that all steps together visit; large workloads get fewer steps."""
LEAST = 0.01
"""Smallest share, relative to an equal one; every measurement needs some budget."""
TINY = 1e-9
"""The same while shares are searched for, so that none vanishes."""


def minimise_sum(design: Design, weights: Sequence[float], start: Sequence[float]) -> list[float]:
    """Shares that minimise the weighted sum of the variances."""
    shares, loads = _normalised(start), design.loads(weights)
    for _ in range(_steps(design)):
        precisions = design.precisions(shares)
        gains = _gains(design, loads, precisions)
        if _above_optimum(shares, gains) <= SHARE_TOLERANCE * _total(loads, precisions):
            break
        shares = _stepped(shares, gains)
    return _floored(shares, LEAST)


def minimise_largest(
    design: Design, weights: Sequence[float], start: Sequence[float]
) -> list[float]:
    """Shares that minimise the largest weighted variance."""
    shares, mixture = _normalised(start), _normalised([1.0] * len(weights))
    best, least = shares, math.inf
    for _ in range(_steps(design)):
        precisions = design.precisions(shares)
        variances = list(map(mul, weights, design.variances(precisions)))
        if max(variances) < least:
            best, least = shares, max(variances)
        loads = design.loads(list(map(mul, mixture, weights)))
        gains = _gains(design, loads, precisions)
        # No shares have a largest variance below the least mean of the variances, by any weights.
        bound = _total(loads, precisions) - _above_optimum(shares, gains)
        if least - bound <= SHARE_TOLERANCE * least:
            break
        shares = _stepped(shares, gains)
        mixture = _floored(_normalised(list(map(mul, mixture, variances))), TINY)
    return _floored(best, LEAST)


def _total(loads: Sequence[float], precisions: Sequence[float]) -> float:
    """The weighted sum of the variances."""
    return math.fsum(load / p for load, p in zip(loads, precisions, strict=True) if load)


def _above_optimum(shares: Sequence[float], gains: Sequence[float]) -> float:
    """An upper bound on how far that sum is above its minimum, because it is convex."""
    return max(gains) - math.fsum(map(mul, shares, gains))


def _gains(design: Design, loads: Sequence[float], precisions: Sequence[float]) -> list[float]:
    """How fast the sum of variances falls as each share grows."""
    slopes = [load / p**2 if load else 0.0 for load, p in zip(loads, precisions, strict=True)]
    return [math.fsum(factor * slopes[part] for part, factor in terms) for terms in design.measured]


def _stepped(shares: Sequence[float], gains: Sequence[float]) -> list[float]:
    if not any(gains):
        return list(shares)
    moved = [share * math.sqrt(gain) for share, gain in zip(shares, gains, strict=True)]
    return _floored(_normalised(moved), TINY)


def _normalised(values: Sequence[float]) -> list[float]:
    whole = math.fsum(values)
    return [value / whole for value in values]


def _floored(shares: Sequence[float], least: float) -> list[float]:
    """Raise shares to at least that part of an equal share."""
    return _normalised([max(share, least / len(shares)) for share in shares])


def _steps(design: Design) -> int:
    return max(1, min(MAX_STEPS, MAX_SHARE_WORK // max(1, design.terms)))
