"""The queries that a row satisfies, in forms that are fast to update when one cell changes.

A search over rows changes one cell at a time. With these forms it compares the row before and after the
change, instead of counting all rows again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scrim.spec.workload.conditions import Conjunction
from synth.queries.reading import Reading


@dataclass(frozen=True)
class CellFeatures:
    """Cross tables, one after another: a row is in exactly one cell of each."""

    tables: Sequence[tuple[Reading, ...]]
    """The axes of each table, the last one varying fastest."""


@dataclass(frozen=True)
class ConjunctionFeatures:
    """Conjunctions of conditions on single columns."""

    conjunctions: Sequence[Conjunction]


@dataclass(frozen=True)
class HalfspaceFeatures:
    """Weighted sums of the columns' contributions that must not exceed a threshold.

    All numbers are integers, so that sums are exact in any order.
    """

    contributions: dict[str, "Contribution"]
    thresholds: NDArray[np.int64]


@dataclass(frozen=True)
class Contribution:
    """The contribution of a column to the sums: weights of a code, or of a number's place in its bounds."""

    lower: float
    span: float
    """Distance between the bounds of a numeric column; unused for categories."""
    slope: NDArray[np.int64] | None
    """For numbers: the weight of the place, one per query. The place is an integer number of steps."""
    offset: NDArray[np.int64]
    """One row for each code of a category; for numbers a single row, added if the number is missing."""

    def of(self, numbers: NDArray[Any]) -> NDArray[np.int64]:
        """The contribution of each number to each query's sum: one row per number."""
        if self.slope is None:
            return self.offset[numbers.astype(np.int64)]
        missing = are_missing(numbers, self.lower)
        steps = place(numbers, self.lower, self.span)
        added: NDArray[np.int64] = steps[:, None] * self.slope + missing[:, None] * self.offset
        return added


PLACES = 2**16
"""Steps between the bounds of a numeric column, in halfspaces."""


def are_missing(numbers: NDArray[Any], lower: float) -> NDArray[np.bool_]:
    """Whether numbers are missing: NaN and the numbers of other kinds are not above the lower bound."""
    return ~(numbers >= lower)


def place(numbers: NDArray[Any], lower: float, span: float) -> NDArray[np.int64]:
    """The nearest step between the bounds; missing numbers are at step 0."""
    shares = (np.where(are_missing(numbers, lower), lower, numbers) - lower) / span
    return np.rint(np.clip(shares, 0, 1) * PLACES).astype(np.int64)


Features = CellFeatures | ConjunctionFeatures | HalfspaceFeatures
