"""How `pmw_pub` spends: equal rounds among the workload."""

from collections.abc import Sequence

from scrim.spec.mechanism import PepPub, PmwPub
from scrim.spec.workload import Block
from synth.planning.pace import DEFAULT_ROUNDS, Pace, pace_of
from synth.planning.rounds import plan_rounds
from synth.planning.spending import Rounds, Setting


def choose_measured(spec: PmwPub | PepPub, setting: Setting) -> Sequence[Block]:
    """The workload."""
    return setting.asked


def plan(spec: PmwPub | PepPub, measured: Sequence[Block], setting: Setting) -> Rounds:
    """Twenty rounds of one measurement."""
    return plan_rounds(
        spec, measured, setting, pace=pace_of(spec, measured, setting, default=Pace(DEFAULT_ROUNDS))
    )


def memory_bytes(spec: PmwPub | PepPub, measured: Sequence[Block], setting: Setting) -> None:
    """Unknown: it depends on the number of public rows, which is not declared."""
    return
