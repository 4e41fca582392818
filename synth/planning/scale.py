"""The scale of Gaussian noise for a price. Plans and the door share it, so they agree bit for bit."""

import math

from scrim.spec.budget import UNITS_PER_RHO

HEADROOM = 1 + 2**-40
"""Covers the rounding of OpenDP's privacy map, so that the price at this scale fits."""


def gaussian_scale(l2_squared: int, units: int) -> float:
    """The scale at which a measurement costs at most `units`: sigma = D2 / sqrt(2 rho), rounded up."""
    if units <= 0:
        raise ValueError(f"an operation needs a positive budget, not {units} units")
    return math.sqrt(l2_squared / (2 * (units / UNITS_PER_RHO))) * HEADROOM
