"""Rounding to decimals without leaving an interval."""

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]

_LARGEST_EXACT = 2.0**53
"""Whole numbers up to this have an exact float."""


def grid_limits(low: Reals | float, high: Reals | float, scale: float) -> tuple[Reals, Reals]:
    """The smallest and largest integer k with k / scale in [low, high]; first > last if there is none."""
    with np.errstate(over="ignore", invalid="ignore"):
        first, last = np.rint(np.multiply(low, scale)), np.rint(np.multiply(high, scale))
        # The product may be off by one unit, so compare the quotient, which is correctly rounded.
        first = np.where(first / scale < low, first + 1, first)
        last = np.where(last / scale > high, last - 1, last)
    return first, last


def round_within(values: Reals, low: Reals | float, high: Reals | float, decimals: int) -> Reals:
    """Round values to the nearest number with `decimals` decimals in [low, high].

    A value is unchanged if no such number exists, or if floats are coarser than the grid.
    """
    scale = 10.0**decimals
    first, last = grid_limits(low, high, scale)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = values * scale
        rounded = np.clip(np.rint(scaled), first, last) / scale
        usable = (np.abs(scaled) < _LARGEST_EXACT) & (first <= last)
    return np.where(usable, rounded, values) + 0.0
