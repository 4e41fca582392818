"""Rounding to a number of decimals that never leaves an interval."""

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]

_LARGEST_EXACT = 2.0**53


def grid_limits(low: Reals | float, high: Reals | float, scale: float) -> tuple[Reals, Reals]:
    """The smallest and largest whole k with k / scale in [low, high]; they cross if none is."""
    with np.errstate(over="ignore", invalid="ignore"):
        first, last = np.rint(np.multiply(low, scale)), np.rint(np.multiply(high, scale))
        # The product may be off by one unit, so the quotient decides: it is rounded correctly.
        first = np.where(first / scale < low, first + 1, first)
        last = np.where(last / scale > high, last - 1, last)
    return first, last


def round_within(values: Reals, low: Reals | float, high: Reals | float, decimals: int) -> Reals:
    """The values rounded to the nearest number of so many decimals that is in [low, high].

    A value stays as it is where no such number exists, or where floats are coarser than the grid.
    """
    scale = 10.0**decimals
    first, last = grid_limits(low, high, scale)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = values * scale
        rounded = np.clip(np.rint(scaled), first, last) / scale
        usable = (np.abs(scaled) < _LARGEST_EXACT) & (first <= last)
    return np.where(usable, rounded, values) + 0.0
