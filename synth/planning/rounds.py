"""Plans of rounds: select, measure, update (Liu, Vietri, Wu 2021, algorithm 1)."""

import math
from collections.abc import Sequence
from fractions import Fraction

from scrim.spec.errors import SpecError
from scrim.spec.mechanism import AdaptiveSpec, MechanismSpec
from scrim.spec.workload import Block
from synth.planning.columns import column_alone
from synth.planning.pace import Pace, columns_of
from synth.planning.spending import AnnealedRounds, Rounds, Setting


def plan_rounds(
    spec: AdaptiveSpec,
    measured: Sequence[Block],
    setting: Setting,
    *,
    pace: Pace,
    first: Sequence[Block] | None = None,
) -> Rounds:
    """Divide the budget over T k selections and measurements; the paper's theorem 1 omits the k.

    `first` is measured once, before the rounds; by default, every column alone. If that has no share, the
    promised blocks are, each with the budget of one of the other measurements and its selection.
    """
    first = _every_column(spec, measured, setting) if first is None else first
    opened = tuple(moved_of(first or setting.promised, setting))
    public = tuple(dict.fromkeys(g for g in (*first, *measured) if not is_moved(g, setting)))
    opening = _opening(spec, len(opened), setting, pace=pace)
    reserved = setting.units - opening * len(opened)
    each = reserved // (pace.rounds * pace.per_round)
    weight = spec.selection_share**2 / (spec.selection_share**2 + (1 - spec.selection_share) ** 2)
    select = math.floor(weight * each)
    if min(select, each - select) < 1:
        raise SpecError(
            f"the budget is too small for {pace.rounds} rounds of {pace.per_round} measurements; "
            "ask for fewer rounds"
        )
    planned = Rounds(
        public=public,
        opened=opened if opening else (),
        opening=opening,
        rounds=pace.rounds,
        per_round=pace.per_round,
        select=select * pace.per_round,
        measure=each - select,
    )
    if spec.schedule == "annealed":
        return AnnealedRounds(**vars(planned), reserved=reserved)
    return planned


def _opening(spec: AdaptiveSpec, opened: int, setting: Setting, *, pace: Pace) -> int:
    """Units for each block that is measured before the rounds."""
    if not opened:
        return 0
    if spec.opening_share:
        return math.floor(Fraction(spec.opening_share) * setting.units / opened)
    return setting.units // (pace.rounds * pace.per_round + opened)


def _every_column(
    spec: AdaptiveSpec, measured: Sequence[Block], setting: Setting
) -> Sequence[Block]:
    """The distribution of every candidate column, if the opening has a share."""
    if not spec.opening_share:
        return []
    return [column_alone(name, setting.schema) for name in columns_of(measured)]


def is_moved(block: Block, setting: Setting) -> bool:
    """Whether some unit can change the block's counts; if none can, they are public."""
    return block.sensitivity(setting.schema, setting.protection).l2_squared > 0


def moved_of(blocks: Sequence[Block], setting: Setting) -> list[Block]:
    """The blocks whose counts some unit can change."""
    return [block for block in blocks if is_moved(block, setting)]


def is_measured_singly(block: Block, mechanism: MechanismSpec) -> bool:
    """Whether rounds measure single queries of the block, and not the whole."""
    by_query = isinstance(mechanism, AdaptiveSpec) and mechanism.select == "queries"
    return by_query or not block.is_whole
