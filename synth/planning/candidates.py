"""Which marginals to measure for those that are asked: the orders with the least forecast error.

Measuring high orders spreads the budget over many small cells; measuring low ones leaves out
dependence that only the higher ones show. Both parts are forecast from public numbers alone, as the
sum of absolute errors over the cells of an asked marginal. The constants come from the study in
docs/defaults.md.
"""

import math
from bisect import bisect_right
from itertools import accumulate

from scrim.spec.budget import rho_of_units
from scrim.spec.workload import Block, Blocks, MarginalBlock
from scrim.spec.workload.blocks import MAX_COMBINATIONS, Below
from scrim.spec.workload.marginals import MAX_ORDER
from synth.planning.spending import Setting

MISSED = 0.33
"""What one-way marginals alone leave of a larger one."""
MISSED_BY_NEXT = 0.14
"""Of that, what each further order leaves."""
NOISE_FACTOR, NOISE_POWER, CELL_POWER = 2.8, 0.766, 0.164
"""What noise of a given size leaves after a fit: less than in proportion, since a fit smooths."""
BEYOND_PAIRS = 1.5
"""How many times as much of it is left where more than pairs are measured."""
MAX_MEASURED = 500_000
"""Most queries of a fit; more would take too long."""


def by_forecast_error(setting: Setting, *, highest: int = MAX_ORDER) -> list[Block]:
    """One-way marginals and those of the best order, below the asked ones; other blocks as asked."""
    marginals, others = setting.asked.marginals, setting.asked.others
    if not marginals:
        return others
    highest = min(highest, max(len(block.attributes) for block in marginals))
    choices = [below for k in range(1, highest + 1) if (below := setting.asked.below(k)).names]
    affordable = [choice for choice in choices if choice.queries <= MAX_MEASURED]
    best = min(affordable or choices[:1], key=lambda choice: forecast(marginals, choice, setting))
    return [*best.blocks, *others]


def as_asked(setting: Setting) -> list[Block]:
    """What is asked, and the one-way marginals below it; other orders where that is too much to fit."""
    asked = setting.asked.below(MAX_ORDER)
    if asked.queries > MAX_MEASURED:
        return by_forecast_error(setting)
    return [*asked.blocks, *setting.asked.others]


def smallest_pairs(setting: Setting) -> list[Block]:
    """The pairs below the asked marginals, the smallest first, as many as a fit can take.

    Of marginals about single columns, these; other blocks as asked.
    """
    return [*_smallest(pairs_below(setting.asked)), *setting.asked.others]


def smallest_below(setting: Setting) -> list[Block]:
    """All marginals below the asked ones (their downward closure), the smallest first, as many as a
    fit can take; other blocks as asked. High orders are left out where there are too many.
    """
    highest = max((len(block.attributes) for block in setting.asked.marginals), default=0)
    below: dict[tuple[str, ...], int] = {}
    for order in range(1, highest + 1):
        further = setting.asked.below(order)
        if not further.names or len(below) + len(further.names) > MAX_COMBINATIONS:
            break
        below |= dict(zip(further.names, further.sizes, strict=True))
    return [*_smallest(below), *setting.asked.others]


def _smallest(sizes: dict[tuple[str, ...], int]) -> list[MarginalBlock]:
    """Of marginals with their sizes, the smallest, as many as a fit can take; at least one."""
    ordered = sorted(sizes, key=sizes.__getitem__)
    kept = bisect_right(list(accumulate(map(sizes.__getitem__, ordered))), MAX_MEASURED)
    return [MarginalBlock(names) for names in ordered[: max(1, kept)]]


def pairs_below(asked: Blocks) -> dict[tuple[str, ...], int]:
    """Every pair of columns that some asked marginal contains; of single columns, these. With sizes."""
    below = asked.below(2)
    sizes = dict(zip(below.names, below.sizes, strict=True))
    return {names: size for names, size in sizes.items() if len(names) == 2} or sizes


def forecast(asked: list[MarginalBlock], measured: Below, setting: Setting) -> float:
    """The expected sum of absolute errors over the cells of an asked marginal."""
    order = max(map(len, measured.names))
    missed = [
        MISSED * MISSED_BY_NEXT ** (order - 1) if len(block.attributes) > order else 0.0
        for block in asked
    ]
    last = MarginalBlock(measured.names[-1])
    l2_squared = last.sensitivity(setting.schema, setting.protection).l2_squared
    share = rho_of_units(setting.units) / len(measured.names)
    sigma = math.sqrt(max(1, l2_squared) / (2 * share))
    cells = measured.queries / len(measured.names)
    noise = NOISE_FACTOR * (sigma / setting.expected_rows) ** NOISE_POWER * cells**CELL_POWER
    if order > 2:
        noise *= BEYOND_PAIRS
    return float(sum(missed) / len(asked) + noise)
