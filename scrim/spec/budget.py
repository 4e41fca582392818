"""Privacy budgets: zCDP in integer units, and its conversion to (epsilon, delta).

One unit is 1e-12 rho. Spending is rounded up, limits are rounded down, and a displayed epsilon is
rounded up, so no conversion weakens the guarantee.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Self

from pydantic import Field, model_validator

from scrim.spec.base import Spec

UNITS_PER_RHO = 10**12
MAX_RHO = 1000.0
"""Largest budget, far above any that protects; in units it fits into 64 bits."""
_LARGEST_UNITS = int(MAX_RHO) * UNITS_PER_RHO
_ROUNDING = 1e-14
"""More than the relative error of a sum of a few floating-point logarithms and products."""

Delta = Annotated[float, Field(ge=1e-18, le=1e-3)]
"""Probability that the guarantee fails."""


class Budget(Spec):
    """An amount of privacy: zCDP `rho`, or `epsilon` at the population's delta. Give exactly one."""

    rho: Annotated[float, Field(gt=0, le=MAX_RHO)] | None = None
    """Zero-concentrated differential privacy, the unit of the ledger."""
    epsilon: Annotated[float, Field(gt=0, le=1000)] | None = None
    """Converted to rho once, at the population's delta, rounded down."""

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if (self.rho is None) == (self.epsilon is None):
            raise ValueError("give exactly one of rho and epsilon")
        return self

    def units(self, delta: float) -> int:
        """The budget in units of 1e-12 rho, rounded down."""
        if self.rho is not None:
            # Use the decimal as written, so that seven times 0.1 fits into 0.7.
            return math.floor(Fraction(repr(self.rho)) * UNITS_PER_RHO)
        assert self.epsilon is not None
        return units_of_epsilon(self.epsilon, delta)


def rho_of_units(units: int) -> float:
    """Units as rho, for display."""
    return units / UNITS_PER_RHO


# A page of releases converts many amounts, most of them the same as on the page before.
@lru_cache(maxsize=4096)
def epsilon_of_units(units: int, delta: float) -> float:
    """The epsilon at `delta` that `units` of zCDP imply, rounded up.

    Minimises rho a + ln(1/(a delta))/(a-1) + ln(1-1/a) over a > 1 (Canonne, Kamath, Steinke 2020,
    proposition 12). Every a gives a valid bound, so an imperfect minimum costs accuracy, never
    privacy.
    """
    if units < 0 or not 0 < delta < 1:
        raise ValueError("units must not be negative, and delta must lie between 0 and 1")
    if units == 0:
        return 0.0
    rho = units / UNITS_PER_RHO
    low, high = -40.0, 60.0
    for _ in range(64):
        # The derivative has the sign of rho (a-1)^2 + ln(a delta), which is increasing: one root.
        middle = (low + high) / 2
        excess = math.exp(middle)
        if rho * excess**2 + math.log((1 + excess) * delta) < 0:
            low = middle
        else:
            high = middle
    excess = math.exp(high)
    # ln(1-1/a) is -ln(1+1/(a-1)), which stays accurate for large a.
    terms = (
        rho * (1 + excess),
        -math.log((1 + excess) * delta) / excess,
        -math.log1p(1 / excess),
    )
    return max(0.0, math.fsum(terms) + _ROUNDING * math.fsum(map(abs, terms)))


def units_of_epsilon(epsilon: float, delta: float) -> int:
    """The most units whose epsilon at `delta` does not exceed `epsilon`."""
    low, high = 0, _LARGEST_UNITS
    while low < high:
        middle = (low + high + 1) // 2
        if epsilon_of_units(middle, delta) <= epsilon:
            low = middle
        else:
            high = middle - 1
    return low
