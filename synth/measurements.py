"""Noisy counts, and the one way to merge repeated ones."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synth.queries import QueryBlock, Single

EXACT = 1e-3
"""A public count has no noise. A fit that needs some meets it to within this many rows."""


@dataclass(frozen=True)
class Measurement:
    """Noisy counts: the only thing about the rows that ever reaches a model."""

    query: QueryBlock | Single
    values: NDArray[Any]
    sigma: float
    """Standard deviation of the noise on each count; 0 where the count is public."""

    @property
    def block(self) -> QueryBlock:
        """The block that it is about, as a whole or in part."""
        return self.query.block if isinstance(self.query, Single) else self.query


def merge_repeated(measurements: Iterable[Measurement]) -> list[Measurement]:
    """One measurement for each query, in the order of the first ones."""
    by_query: dict[QueryBlock | Single, list[Measurement]] = {}
    for measurement in measurements:
        by_query.setdefault(measurement.query, []).append(measurement)
    return [weighted_average(repeated) for repeated in by_query.values()]


def weighted_average(measurements: Sequence[Measurement]) -> Measurement:
    """Several measurements of the same query as one, each weighted by its precision."""
    if len(measurements) == 1 or any(m.sigma == 0 for m in measurements):
        return min(measurements, key=lambda m: m.sigma)
    precision = np.array([m.sigma**-2 for m in measurements])
    values = np.stack([m.values for m in measurements])
    mean = precision @ values / precision.sum()
    return Measurement(measurements[0].query, mean, float(precision.sum() ** -0.5))
