"""How `h_gem` spends: sizes and single columns first, then rounds among the workload or its pairs."""

import math
import statistics
from collections.abc import Iterable, Sequence
from itertools import combinations

from scrim.spec.budget import rho_of_units
from scrim.spec.mechanism import HierarchicalGem
from scrim.spec.two_level import LinkedSchema
from scrim.spec.workload import Block, HierarchicalBlock
from scrim.spec.workload.hierarchical import as_linked
from synth.planning.households import open_levels
from synth.planning.memory import (
    BYTES_PER_QUERY,
    DOUBLE,
    KEPT_PLANS,
    KEPT_TABLES,
    MAX_ENTRIES,
    RECOMPUTED_TABLES,
    SINGLE,
    linked_entries,
    queries_of,
)
from synth.planning.mixture import generator_bytes
from synth.planning.pace import Pace, count_candidates, one_by_one, pace_of
from synth.planning.rounds import moved_of, plan_rounds
from synth.planning.spending import Rounds, Setting

MEASUREMENTS_PER_ROUND = 3
"""Number of measurements per round (docs/defaults.md)."""
FEW_ROUNDS = 6
"""Number of rounds if the unit is a household and cells do not stand out from the noise."""
TIMES_AS_MANY = 2
"""Factor on the number of measurements of other mixtures in that case."""
STANDS_OUT = 5.0
"""An average cell stands out if its count is more than this many times its noise."""


def choose_measured(spec: HierarchicalGem, setting: Setting) -> Sequence[Block]:
    """The workload if its cells stand out from their noise; otherwise pairs of its columns.

    A household changes counts of groups less than counts of individuals, and counts of groups also
    describe individuals. So if the unit is a household, pairs of counts of individuals are left out,
    unless there are no others.
    """
    if _stands_out(spec, setting):
        return setting.asked
    pairs = list(dict.fromkeys(pair for block in setting.asked for pair in _pairs_of(block)))
    if setting.protection.unit != "household":
        return pairs
    of_groups = [
        pair
        for pair in pairs
        if not (isinstance(pair, HierarchicalBlock) and pair.level == "individual")
    ]
    return of_groups or pairs


def pace(spec: HierarchicalGem, measured: Sequence[Block], setting: Setting) -> Pace:
    """Measure everything once if cells stand out; otherwise as many as other mixtures, or twice that.

    With more noise, a fit follows the noise sooner, so there are fewer rounds and fewer steps.
    """
    worth = one_by_one(spec, measured, setting).rounds
    candidates = max(1, count_candidates(spec, moved_of(measured, setting), setting.schema))
    rounds = _rounds_of(worth, measured, setting)
    if _stands_out(spec, setting):
        measurements = candidates
    elif setting.protection.unit == "household":
        measurements, rounds = TIMES_AS_MANY * worth, FEW_ROUNDS
    else:
        measurements = worth
    measurements = max(1, min(measurements, candidates))
    per_round = max(1, round(measurements / rounds))
    default = Pace(measurements // per_round, per_round)
    return pace_of(spec, measured, setting, default=default)


def plan(spec: HierarchicalGem, measured: Sequence[Block], setting: Setting) -> Rounds:
    """A share for the opening, and the rest for the rounds."""
    return plan_rounds(
        spec,
        measured,
        setting,
        pace=pace(spec, measured, setting),
        first=open_levels(spec, measured, setting),
    )


def _rounds_of(worth: int, measured: Sequence[Block], setting: Setting) -> int:
    # Rounds were studied with units that change two cells by one; a larger change acts like less budget.
    moved = max(
        block.sensitivity(setting.schema, setting.protection).l2_squared for block in measured
    )
    less = math.sqrt(math.sqrt(max(2, moved) / 2))
    return max(1, round(worth / MEASUREMENTS_PER_ROUND / less))


def _stands_out(spec: HierarchicalGem, setting: Setting) -> bool:
    """Whether an average workload cell is several times larger than its noise (docs/defaults.md).

    The noise is that of measuring as many blocks as other mixtures would.
    """
    candidates = count_candidates(spec, setting.asked, setting.schema)
    worth = one_by_one(spec, setting.asked, setting).rounds
    # For a small table `worth` may be zero; one block is measured anyway.
    measured = max(1, min(worth, candidates))
    rho = rho_of_units(setting.units) * (1 - spec.opening_share) / measured
    ratios = []
    for block in setting.asked:
        l2_squared = block.sensitivity(setting.schema, setting.protection).l2_squared
        sigma = math.sqrt(max(1, l2_squared) / (2 * rho))
        ratios.append(setting.expected_rows / block.size(setting.schema) / sigma)
    return statistics.median(ratios) > STANDS_OUT


def memory_bytes(spec: HierarchicalGem, measured: Sequence[Block], setting: Setting) -> int:
    """The network, its output for every place in a group, and the tables computed from it."""
    linked = as_linked(setting.schema)
    places, of_groups = linked.max_group_size, set(linked.group_attributes)
    own = sum(size for name, size in linked.sizes.items() if name not in of_groups)
    codes = places + sum(linked.sizes.values()) + (places - 1) * own
    planned = pace(spec, measured, setting)
    moved = moved_of(measured, setting)
    share = min(1.0, planned.rounds * planned.per_round / max(1, len(moved)))
    # Everything public is fitted from the start.
    first = {*open_levels(spec, measured, setting), *(set(measured) - set(moved))}
    entries = share * sum(_entries_of(block, linked) for block in moved)
    tables = spec.components * (entries + sum(_entries_of(block, linked) for block in first))
    if tables > KEPT_TABLES * MAX_ENTRIES:
        tables = RECOMPUTED_TABLES * MAX_ENTRIES
    plans = min(planned.rounds, KEPT_PLANS) * share * queries_of(measured, linked)
    return (
        generator_bytes(spec, codes)
        + round(SINGLE * tables + DOUBLE * plans)
        + SINGLE * MAX_ENTRIES
        + BYTES_PER_QUERY * queries_of(measured, linked)
    )


def _pairs_of(block: Block) -> Iterable[Block]:
    if not isinstance(block, HierarchicalBlock) or len(block.attributes) <= 2:
        return [block]
    return [HierarchicalBlock(pair, block.level) for pair in combinations(block.attributes, 2)]


def _entries_of(block: Block, schema: LinkedSchema) -> int:
    of_groups = [schema.sizes[name] for name in block.attributes if name in schema.group_attributes]
    own = [schema.sizes[name] for name in block.attributes if name not in schema.group_attributes]
    # Without attributes of individuals, the last one of groups is a factor of its own.
    cells = [math.prod(of_groups)] if own else [math.prod(of_groups[:-1]), *of_groups[-1:]]
    return linked_entries(
        places=schema.max_group_size, order=len(own), kinds=math.prod(own), cells=cells
    )
