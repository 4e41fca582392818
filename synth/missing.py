"""Missing numbers among numbers: the kinds of missing values as floats.

Algorithms read a column of numbers as float64. The first kind of missing values is NaN. The others, of
columns with several kinds, are numbers far below any bound: kind k is -k * 2^1000. Such a column may not
declare a bound below -1e300 (scrim/spec/columns/numeric.py), so no value is confused with a kind.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

STEP = 2.0**1000
"""Distance between the numbers of two kinds."""
LIMIT = -(2.0**999)
"""Numbers below it are kinds, if the column has several."""


def number_of_kind(kind: int) -> float:
    """The number that stands for a kind, given its position."""
    return float("nan") if kind == 0 else -kind * STEP


def numbers_of_kinds(kinds: int) -> NDArray[np.float64]:
    """The numbers that stand for the first kinds."""
    return np.array([number_of_kind(kind) for kind in range(kinds)])


def kinds_in(numbers: NDArray[Any], kinds: int) -> NDArray[np.int64]:
    """For each number of a column with `kinds` kinds: 0 if it is present, else 1 plus its kind."""
    found: NDArray[np.int64] = np.isnan(numbers).astype(np.int64)
    if kinds > 1:
        others = numbers < LIMIT
        found[others] = np.rint(numbers[others] / -STEP).astype(np.int64) + 1
    return found
