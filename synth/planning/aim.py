"""How `aim` spends: one-way marginals first, then annealed rounds among all marginals that fit."""

from collections.abc import Sequence

from scrim.spec.mechanism import Aim, PgmEm
from scrim.spec.workload import Block
from synth.planning.candidates import smallest_below
from synth.planning.graphical import model_bytes, refuse_without_room
from synth.planning.pace import one_by_one, pace_of
from synth.planning.rounds import plan_rounds
from synth.planning.spending import Rounds, Setting


def choose_measured(spec: Aim, setting: Setting) -> Sequence[Block]:
    """All marginals contained in the workload's: the rounds select which ones to measure."""
    return smallest_below(setting)


def plan(spec: Aim | PgmEm, measured: Sequence[Block], setting: Setting) -> Rounds:
    """A share for the one-way marginals; the rest for rounds (if annealed, at most 16 per column)."""
    refuse_without_room(spec, measured, setting)
    return plan_rounds(
        spec,
        measured,
        setting,
        pace=pace_of(spec, measured, setting, default=one_by_one(spec, measured, setting)),
    )


def memory_bytes(spec: Aim | PgmEm, measured: Sequence[Block], setting: Setting) -> int:
    """The tables of the model, and its answers."""
    return model_bytes(spec, measured, setting)
