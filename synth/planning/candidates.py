"""Which marginals to measure for a workload: those of the orders with the least forecast error.

Measuring high orders spreads the budget over many small cells; measuring low orders misses
dependence that only higher orders show. Both errors are forecast from public numbers alone, as the
sum of absolute errors over the cells of a workload marginal. The constants come from the study in
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
"""Error of a larger marginal when only one-way marginals are measured."""
MISSED_BY_NEXT = 0.14
"""Factor on that error for each further order."""
NOISE_FACTOR, NOISE_POWER, CELL_POWER = 2.8, 0.766, 0.164
"""Error after a fit as a function of the noise: less than proportional, since a fit smooths."""
BEYOND_PAIRS = 1.5
"""Factor on that error when marginals larger than pairs are measured."""
MAX_MEASURED = 500_000
"""Largest number of queries in a fit; more would take too long."""


def by_forecast_error(setting: Setting, *, highest: int = MAX_ORDER) -> list[Block]:
    """One-way marginals and those of the best order, contained in the workload's; other blocks as given."""
    marginals, others = setting.asked.marginals, setting.asked.others
    if not marginals:
        return others
    highest = min(highest, max(len(block.attributes) for block in marginals))
    choices = [below for k in range(1, highest + 1) if (below := setting.asked.below(k)).names]
    affordable = [choice for choice in choices if choice.queries <= MAX_MEASURED]
    best = min(affordable or choices[:1], key=lambda choice: forecast(marginals, choice, setting))
    return [*best.blocks, *others]


def as_asked(setting: Setting) -> list[Block]:
    """The workload and its one-way marginals; if that is too large to fit, the best other orders."""
    asked = setting.asked.below(MAX_ORDER)
    if asked.queries > MAX_MEASURED:
        return by_forecast_error(setting)
    return [*asked.blocks, *setting.asked.others]


def smallest_pairs(setting: Setting) -> list[Block]:
    """Pairs contained in the workload's marginals, the smallest first, as many as a fit can hold.

    If the workload has only single columns, those. Other blocks as given.
    """
    return [*_smallest(pairs_below(setting.asked)), *setting.asked.others]


def smallest_below(setting: Setting) -> list[Block]:
    """All marginals contained in the workload's (its downward closure), the smallest first, as many as a
    fit can hold; other blocks as given. High orders are left out if there are too many marginals.
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
    """Return the smallest marginals, as many as a fit can hold; at least one."""
    ordered = sorted(sizes, key=sizes.__getitem__)
    kept = bisect_right(list(accumulate(map(sizes.__getitem__, ordered))), MAX_MEASURED)
    return [MarginalBlock(names) for names in ordered[: max(1, kept)]]


def pairs_below(asked: Blocks) -> dict[tuple[str, ...], int]:
    """Sizes of all pairs of columns in the workload's marginals; of single columns if there is no pair."""
    below = asked.below(2)
    sizes = dict(zip(below.names, below.sizes, strict=True))
    return {names: size for names, size in sizes.items() if len(names) == 2} or sizes


def forecast(asked: list[MarginalBlock], measured: Below, setting: Setting) -> float:
    """The expected sum of absolute errors over the cells of a workload marginal."""
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
