"""How `pgm_em` spends: one-way marginals first, then equal rounds among pairs that have room."""

from collections.abc import Sequence

from scrim.spec.mechanism import PgmEm
from scrim.spec.workload import Block
from synth.planning.graphical import model_bytes, refuse_without_room
from synth.planning.mixture import choose_pairs
from synth.planning.pace import one_by_one, pace_of
from synth.planning.rounds import plan_rounds
from synth.planning.spending import Rounds, Setting


def choose_measured(spec: PgmEm, setting: Setting) -> Sequence[Block]:
    """Pairs, where they are worth their noise."""
    return choose_pairs(setting)


def plan(spec: PgmEm, measured: Sequence[Block], setting: Setting) -> Rounds:
    """A share for the one-way marginals, and a round for each marginal worth a measurement."""
    refuse_without_room(spec, measured, setting)
    return plan_rounds(
        spec,
        measured,
        setting,
        pace=pace_of(spec, measured, setting, default=one_by_one(spec, measured, setting)),
    )


def memory_bytes(spec: PgmEm, measured: Sequence[Block], setting: Setting) -> int:
    """The tables of the model, and what it answers."""
    return model_bytes(spec, measured, setting)
