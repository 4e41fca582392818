"""Noisy counts, and how repeated measurements are merged."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synth.queries import QueryBlock, Single

EXACT = 1e-3
"""Noise scale, in rows, that a fit assumes for a public count, which has no noise."""
PUBLIC_WEIGHT = 3.0
"""A public count is fitted this many times as closely as the least noisy measurement."""


@dataclass(frozen=True)
class Measurement:
    """Noisy counts: the only information about the rows that reaches a model."""

    query: QueryBlock | Single
    values: NDArray[Any]
    sigma: float
    """Standard deviation of the noise on each count; 0 if the counts are public, infinite if they were not
    measured."""
    zeros: NDArray[np.bool_] | None = None
    """Counts that rules say are zero, whatever was measured."""

    @property
    def noise(self) -> NDArray[np.float64]:
        """Standard deviation of the noise on each count; 0 for counts that rules say are zero."""
        return np.where(self.is_zero, 0.0, float(self.sigma))

    @property
    def is_zero(self) -> NDArray[np.bool_]:
        """Whether rules say that each count is zero."""
        return np.zeros(self.query.size, np.bool_) if self.zeros is None else self.zeros

    def with_zeros(self, zeros: NDArray[np.bool_] | None) -> "Measurement":
        """Return the counts with zeros where rules say so."""
        if zeros is None:
            return self
        return replace(self, values=np.where(zeros, 0, self.values), zeros=zeros)

    @property
    def block(self) -> QueryBlock:
        """The measured block, or the block of the measured query."""
        return self.query.block if isinstance(self.query, Single) else self.query


def merge_repeated(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Merge repeated measurements: one per query, in order of first occurrence."""
    by_query: dict[QueryBlock | Single, list[Measurement]] = {}
    for measurement in measurements:
        by_query.setdefault(measurement.query, []).append(measurement)
    return [weighted_average(repeated) for repeated in by_query.values()]


def weighted_average(measurements: Sequence[Measurement]) -> Measurement:
    """Average measurements of the same query, weighted by precision."""
    # What was not measured adds no more than zeros, which all measurements of the query have.
    measurements = [m for m in measurements if np.isfinite(m.sigma)] or measurements[:1]
    if len(measurements) == 1 or any(m.sigma == 0 for m in measurements):
        return min(measurements, key=lambda m: m.sigma)
    precision = np.array([m.sigma**-2 for m in measurements])
    values = np.stack([m.values for m in measurements])
    mean = precision @ values / precision.sum()
    return replace(measurements[0], values=mean, sigma=float(precision.sum() ** -0.5))


def least_noise(measurements: Sequence[Measurement]) -> float:
    """Return the noise scale that is assumed for public counts and zeros, which have no noise.

    It is a fraction of the smallest measured noise; much less would let public counts dominate the fit.
    If all counts are public, they are fitted almost exactly.
    """
    sigmas = (measurement.sigma for measurement in measurements)
    noisy = [sigma for sigma in sigmas if 0 < sigma < math.inf]
    return min(noisy) / PUBLIC_WEIGHT if noisy else EXACT
