"""Random halfspaces in integers.

Weights and thresholds are rounded to fixed point, and numbers to steps between their bounds. Every sum
is then an integer that a double represents exactly, in any order of summation. So whether a row is in a
halfspace depends on that row alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from scrim.spec.schema import Attribute
from scrim.spec.workload.halfspaces import coordinates
from synth.queries.features import PLACES

WEIGHT = 2**24
"""A weight of 1 in fixed point."""
UNIT = WEIGHT * PLACES
"""A sum, or a threshold, of 1 in fixed point."""
LARGEST_NORMAL = 8.0
"""Normal numbers beyond it (one in 10^15) are clipped to it, so that sums are bounded."""
DRAWN_AT_ONCE = 2**22
"""Limit of numbers in a batch of halfspaces that are drawn together."""
MAX_BATCH = 512
"""Most halfspaces of a batch."""
KEPT_BYTES = 2**28
"""Memory limit of cached batches; other batches are drawn again when they are needed."""


@dataclass(frozen=True)
class Batch:
    """Some halfspaces: the weighted sum of a row's coordinates is at most the threshold."""

    weights: NDArray[np.int32]
    """One row per halfspace, one column per coordinate, in units of 1 / WEIGHT."""
    thresholds: NDArray[np.int64]
    """In units of 1 / UNIT."""


class HalfspaceDraws:
    """Halfspaces of a seed, drawn batch by batch when they are needed.

    Paper: Liu, Tang, Vietri, Wu (2023), section 5.2: weights ~ N(0, 1/d) for d columns, thresholds
    ~ N(0, 1). Each batch has its own random generator, of a kind whose stream is stable across versions.
    """

    def __init__(self, seed: int, count: int, columns: Sequence[Attribute]) -> None:
        self._seed = [seed % 2**32, seed // 2**32]
        self._count = count
        self._scale = len(columns) ** -0.5
        self._coordinates = sum(coordinates(column) for column in columns)
        self._batch_size = min(MAX_BATCH, max(1, DRAWN_AT_ONCE // self._coordinates))
        self._kept: dict[int, Batch] = {}

    @property
    def batches(self) -> int:
        """Number of batches."""
        return ceil(self._count / self._batch_size)

    def batch(self, number: int) -> Batch:
        """Consecutive halfspaces; the last batch may be shorter."""
        if number in self._kept:
            return self._kept[number]
        drawn = self._draw(number)
        # The first entries stay: in a loop over more than fit, replacing them would never give a hit.
        if (len(self._kept) + 1) * drawn.weights.nbytes <= KEPT_BYTES:
            self._kept[number] = drawn
        return drawn

    def take(self, queries: Sequence[int]) -> Batch:
        """Some of the halfspaces."""
        wanted = np.asarray(queries, dtype=np.int64)
        weights = np.empty((len(wanted), self._coordinates), np.int32)
        thresholds = np.empty(len(wanted), np.int64)
        numbers, places = np.divmod(wanted, self._batch_size)
        for number in np.unique(numbers):
            mine, batch = numbers == number, self.batch(int(number))
            weights[mine] = batch.weights[places[mine]]
            thresholds[mine] = batch.thresholds[places[mine]]
        return Batch(weights, thresholds)

    def _draw(self, number: int) -> Batch:
        rng = np.random.RandomState([*self._seed, number])
        normal = rng.standard_normal((self._batch_size, self._coordinates + 1))
        length = min(self._batch_size, self._count - number * self._batch_size)
        drawn = np.clip(normal[:length], -LARGEST_NORMAL, LARGEST_NORMAL)
        return Batch(
            np.rint(drawn[:, 1:] * (self._scale * WEIGHT)).astype(np.int32),
            np.rint(drawn[:, 0] * UNIT).astype(np.int64),
        )
