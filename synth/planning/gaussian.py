"""How `gaussian` spends: it measures once, with the shares that minimise the error of its answers.

Marginals are measured so that least squares answers them best; other blocks are measured as asked.

Under add/remove it measures the parts of the workload's marginals, each with a share of its own. This is
the optimum over all strategies (ResidualPlanner). The part of no columns is the number of rows, which is
counted before the mechanism starts; its share follows from the same optimum.

Otherwise it measures whole marginals of the workload. Smaller ones below them are not candidates: the
measurements of the workload determine their parts better than the optimum needs. A marginal of the
workload that the others determine well enough is not measured.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from scrim.spec.budget import rho_of_units
from scrim.spec.errors import SpecError
from scrim.spec.mechanism import Gaussian
from scrim.spec.sensitivity import MAX_PART_CELLS
from scrim.spec.workload import (
    NUMBER_OF_INDIVIDUALS,
    Block,
    Blocks,
    HierarchicalBlock,
    MarginalBlock,
    PartBlock,
)
from synth.planning.one_shot import divide
from synth.planning.precision import (
    MAX_PARTS,
    Design,
    Measurable,
    Names,
    count_parts,
    design_of,
    subsets,
)
from synth.planning.shares import LEAST, minimise_largest, minimise_sum
from synth.planning.spending import ROW_COUNT_SHARE, OneShot, Setting

RESOLUTION = 2**40
"""Shares are rounded to multiples of 1 / RESOLUTION, far above the rounding errors of their computation."""
MOST_PARTS = 1000
"""Parts are measured if there are at most this many, or at most twice as many as marginals. Each
measurement is a pass over the rows."""
MOST_SHARES = 60
"""Largest number of different shares of whole blocks. The exact curve of a release takes time for each."""
FINEST_GRID = 32.0
"""Shares are rounded to powers of 2^(1 / FINEST_GRID), or of larger ones if there are too many."""


def choose_measured(spec: Gaussian, setting: Setting) -> Sequence[Block]:
    """The parts of the workload's marginals, or whole marginals; other blocks, and what they divide by."""
    parts = _parts(spec, setting)
    marginals = [PartBlock(names) for names in parts] or _choose_marginals(spec, setting)
    return [*marginals, *_others(setting.asked)]


def _others(asked: Blocks) -> list[Block]:
    """The asked blocks that are not marginals, and what their fractions divide by."""
    return list(dict.fromkeys([*asked.others, *denominators(asked)]))


def denominators(asked: Blocks) -> list[Block]:
    """The number of individuals, if some fractions divide by it."""
    blocks = [block for block in asked.others if isinstance(block, HierarchicalBlock)]
    return [NUMBER_OF_INDIVIDUALS] if any(b.level == "individual" for b in blocks) else []


def row_count_share(spec: Gaussian, setting: Setting) -> float:
    """The share of the budget for counting the rows, if their number is private.

    Fractions divide by the number of rows. Its variance V adds f^2 V to that of a fraction f, in counts;
    the squares of the fractions of a marginal sum to at most 1. In the mean over the cells of a marginal,
    the factor of V is therefore at most 1 / cells, where that of a count is 1 / cells^2. The fractions of
    other blocks are not known to be as small, so with these the share is fixed.
    """
    parts = _parts(spec, setting)
    if not parts or setting.asked.others:
        return ROW_COUNT_SHARE
    measured = [PartBlock(()), *(PartBlock(names) for names in parts)]
    design = _design(spec, measured, replace(setting, units=1, row_count=0))
    of_fractions = [
        [(p, factor if p else math.sqrt(factor)) for p, factor in terms] for terms in design.asked
    ]
    return _optimal_shares(spec, measured, setting, replace(design, asked=of_fractions))[0]


def _parts(spec: Gaussian, setting: Setting) -> list[Names]:
    """The column sets whose parts are measured; none if whole marginals are."""
    asked, schema = setting.asked.marginals, setting.schema
    names = [block.attributes for block in asked]
    if (
        not spec.consistent
        or spec.measure is not None
        or setting.protection.relation != "add_remove"
        or len(asked) == 1  # whose cells, measured as they are, are as precise
        or count_parts(names) > MAX_PARTS
        or any(block.size(schema) > MAX_PART_CELLS for block in asked)
        or any(schema.sizes[name] == 1 for each in names for name in each)
    ):
        return []
    parts = list(dict.fromkeys(part for each in names for part in subsets(each) if part))
    return parts if len(parts) <= max(MOST_PARTS, 2 * len(asked)) else []


def _choose_marginals(spec: Gaussian, setting: Setting) -> Sequence[Block]:
    """The marginals of the workload, without those that others contain and that would get hardly a share."""
    asked = setting.asked.marginals
    names = [block.attributes for block in asked]
    if not spec.consistent or count_parts(names) > MAX_PARTS:
        return asked
    contained = {part for each in names for part in subsets(each) if part != each}
    shares = optimal_shares(spec, [*asked, *_others(setting.asked)], setting)
    least = 2 * LEAST / len(shares)
    return [
        block
        for block, share in zip(asked, shares, strict=False)
        if share > least or block.attributes not in contained
    ]


def plan(spec: Gaussian, measured: Sequence[Block], setting: Setting) -> OneShot:
    """The optimal share for each block."""
    shares = optimal_shares(spec, measured, setting)
    if not any(isinstance(block, PartBlock) for block in measured):
        shares = alike(shares)
    return divide(setting.units, [Fraction(round(share * RESOLUTION)) for share in shares])


def alike(shares: Sequence[float]) -> list[float]:
    """Round shares so that few of them differ.

    Near the optimum, the error grows with the square of the rounding: by 0.1% if shares are off by 5%.
    """
    found, grid = list(shares), FINEST_GRID
    while len(set(found)) > MOST_SHARES:
        found = [2.0 ** (round(math.log2(share) * grid) / grid) for share in shares]
        grid *= 0.9
    return found


def memory_bytes(spec: Gaussian, measured: Sequence[Block], setting: Setting) -> None:
    """Unknown: it depends on how the measurements overlap."""
    return


def optimal_shares(spec: Gaussian, measured: Sequence[Block], setting: Setting) -> list[float]:
    """The share of each measured block in the budget of the mechanism."""
    return _optimal_shares(spec, measured, setting, _design(spec, measured, setting))


def _optimal_shares(
    spec: Gaussian, measured: Sequence[Block], setting: Setting, design: Design
) -> list[float]:
    weights = _weights(spec, setting)
    if spec.objective == "max":
        return minimise_largest(design, weights, [1.0] * len(measured))
    cells = [block.size(setting.schema) for block in _answered(setting)]
    weights = [weight * size for weight, size in zip(weights, cells, strict=True)]
    start = [math.sqrt(block.size(setting.schema)) for block in measured]
    return minimise_sum(design, weights, start)


def answer_variances(
    spec: Gaussian, measured: Sequence[Block], setting: Setting, spending: OneShot
) -> dict[Block, float]:
    """The variance of the answers to each asked block, in counts."""
    design = _design(spec, measured, setting)
    shares = [units / setting.units for units in spending.measure]
    found = design.variances(design.precisions(shares))
    paid = 2 * rho_of_units(setting.units)
    return {b: v / paid for b, v in zip(_answered(setting), found, strict=True)}


def _answered(setting: Setting) -> list[Block]:
    """What is answered: the asked marginals, then the other blocks."""
    return [*setting.asked.marginals, *_others(setting.asked)]


def _design(spec: Gaussian, measured: Sequence[Block], setting: Setting) -> Design:
    """How the measurements determine the answers, in the order of `measured` and of `_answered`."""
    tables = [block for block in measured if isinstance(block, MarginalBlock | PartBlock)]
    others = [block for block in measured if not isinstance(block, MarginalBlock | PartBlock)]
    moved = {b: b.sensitivity(setting.schema, setting.protection).l2_squared for b in measured}
    design = design_of(
        [block.attributes for block in setting.asked.marginals],
        [
            Measurable(block.attributes, moved[block], is_part=isinstance(block, PartBlock))
            for block in tables
        ],
        setting.schema.sizes,
        rows=_precision_of_rows(setting),
        consistent=spec.consistent,
    )
    return design.beside(_others(setting.asked), {block: moved[block] for block in others})


def _precision_of_rows(setting: Setting) -> float:
    """The precision of the number of rows, for 2 rho = 1; infinite if it is public."""
    moved = setting.protection.row_count_sensitivity
    return setting.row_count / setting.units / moved**2 if moved else math.inf


def _weights(spec: Gaussian, setting: Setting) -> list[float]:
    """The weight of each answered block: the largest among the items that ask for it."""
    items = setting.asked.items
    weights = spec.weights or [1.0] * len(items)
    if len(weights) != len(items):
        raise SpecError(
            f"mechanism.weights has {len(weights)} weights, but the workload has {len(items)} items; "
            "give one weight for each item"
        )
    found = dict.fromkeys(_answered(setting), 0.0)
    for weight, item in zip(weights, items, strict=True):
        for block in item:
            found[block] = max(found[block], weight)
    for whole in denominators(setting.asked):
        found[whole] = max(found[whole], *weights)
    return list(found.values())
