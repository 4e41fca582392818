"""How `mwem` spends: equal rounds among the workload."""

from collections.abc import Sequence

from scrim.spec.mechanism import Mwem, Pep
from scrim.spec.workload import Block
from synth.planning.histogram import refuse_large_table
from synth.planning.memory import histogram_bytes
from synth.planning.pace import DEFAULT_ROUNDS, Pace, pace_of
from synth.planning.rounds import plan_rounds
from synth.planning.spending import Rounds, Setting


def choose_measured(spec: Mwem | Pep, setting: Setting) -> Sequence[Block]:
    """The workload."""
    return setting.asked


def plan(spec: Mwem | Pep, measured: Sequence[Block], setting: Setting) -> Rounds:
    """Twenty rounds of one measurement; refused if the histogram is too large."""
    refuse_large_table(spec, measured, setting)
    return plan_rounds(
        spec, measured, setting, pace=pace_of(spec, measured, setting, default=Pace(DEFAULT_ROUNDS))
    )


def memory_bytes(spec: Mwem, measured: Sequence[Block], setting: Setting) -> int:
    """The weights and their sum over the rounds; at the end also the average, if requested."""
    copies = 3 if spec.output == "average" else 2
    return histogram_bytes([*measured, *setting.asked], setting.schema, copies=copies)
