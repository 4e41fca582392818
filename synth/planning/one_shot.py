"""Plans in which everything is measured once."""

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from scrim.spec.errors import SpecError
from scrim.spec.workload import Block
from synth.planning.spending import OneShot

STEPS, EXCESS, STEPS_POWER = 200, 8000.0, 0.31
"""Steps of a fit whose squared residuals exceed by EXCESS, in sum and in units of the noise, what noise
alone would leave, and how the steps grow with that. Chosen on pairs of ADULT at epsilon 0.1, 1 and 10."""


def divide(units: int, weights: Sequence[Fraction]) -> OneShot:
    """Divide a budget in proportion to the weights, rounding down."""
    # Computed with integers: sums of many fractions are slow.
    denominator = math.lcm(*{weight.denominator for weight in weights})
    parts = [weight.numerator * (denominator // weight.denominator) for weight in weights]
    whole = sum(parts)
    shares = tuple(part * units // whole for part in parts)
    if min(shares) < 1:
        raise SpecError(f"the budget is too small for {len(weights)} measurements; ask for fewer")
    return OneShot(measure=shares)


def equal_weights(measured: Sequence[Block]) -> list[Fraction]:
    """The same share for each block."""
    return [Fraction(1)] * len(measured)


def one_way_apart(measured: Sequence[Block], share: float) -> list[Fraction]:
    """Give one-way blocks their own share: they are few, and every answer depends on them."""
    is_single = [len(block.attributes) == 1 for block in measured]
    count = Counter(is_single)
    if len(count) == 1:
        return equal_weights(measured)
    weight = {True: Fraction(share) / count[True], False: (1 - Fraction(share)) / count[False]}
    return [weight[single] for single in is_single]


def steps_for(excess: float, limit: int) -> int:
    """Steps of a fit that starts with this sum of squared residuals beyond what noise alone leaves."""
    growth: float = max(1.0, excess / EXCESS) ** STEPS_POWER
    return min(limit, math.ceil(STEPS * growth))
