"""How `h_mwem` spends: sizes and single columns first, then equal rounds among the workload."""

import math
from collections.abc import Iterable, Sequence

from scrim.spec.mechanism import HierarchicalMwem
from scrim.spec.two_level import LinkedSchema
from scrim.spec.workload import Block, HierarchicalBlock
from scrim.spec.workload.hierarchical import as_linked
from synth.planning.histogram import refuse_many_cells
from synth.planning.households import open_levels
from synth.planning.memory import CACHED_BYTES, DOUBLE
from synth.planning.pace import DEFAULT_ROUNDS, Pace, columns_of, pace_of
from synth.planning.rounds import plan_rounds
from synth.planning.spending import Rounds, Setting


def choose_measured(spec: HierarchicalMwem, setting: Setting) -> Sequence[Block]:
    """The workload."""
    return setting.asked


def plan(spec: HierarchicalMwem, measured: Sequence[Block], setting: Setting) -> Rounds:
    """A share for the opening, and twenty rounds; refused if the histogram is too large."""
    used = columns_of((*setting.asked, *measured))
    cells = count_kinds(used, as_linked(setting.schema))
    refuse_many_cells(spec, cells, columns=len(used))
    return plan_rounds(
        spec,
        measured,
        setting,
        pace=pace_of(spec, measured, setting, default=Pace(DEFAULT_ROUNDS)),
        first=open_levels(spec, measured, setting),
    )


def count_kinds(used: Iterable[str], schema: LinkedSchema) -> int:
    """Number of combinations of the group's columns and a multiset of individuals."""
    used, of_groups = list(used), set(schema.group_attributes)
    groups = math.prod(schema.sizes[name] for name in used if name in of_groups)
    kinds = math.prod(schema.sizes[name] for name in used if name not in of_groups)
    members = range(1, schema.max_group_size + 1)
    return groups * sum(math.comb(kinds + size - 1, size) for size in members)


def memory_bytes(spec: HierarchicalMwem, measured: Sequence[Block], setting: Setting) -> int:
    """The weights, their sum over the rounds, the changes of a step, and the members of each multiset."""
    linked = as_linked(setting.schema)
    blocks = (*measured, *setting.asked)
    used, of_groups = set(columns_of(blocks)), set(linked.group_attributes)
    copies = 6 if spec.output == "average" else 5
    members = DOUBLE * count_kinds(used - of_groups, linked) * linked.max_group_size
    distinguished = {
        (block.level, tuple(name for name in block.attributes if name not in of_groups))
        for block in blocks
        if isinstance(block, HierarchicalBlock)
    }
    remembered = min(CACHED_BYTES, 2 * members * len(distinguished))
    return DOUBLE * copies * count_kinds(used, linked) + 3 * members + remembered
