"""How `gem` spends: one-way marginals first, then rounds among pairs, one measurement in each."""

from collections.abc import Sequence

from scrim.spec.mechanism import GenerativeSpec, Rap, RapSoftmax
from scrim.spec.workload import Block
from synth.planning.candidates import smallest_pairs
from synth.planning.mixture import fitted_in_rounds_bytes
from synth.planning.pace import Pace, one_by_one, pace_of
from synth.planning.rounds import plan_rounds
from synth.planning.spending import Rounds, Setting

Spec = GenerativeSpec | Rap | RapSoftmax


def choose_measured(spec: Spec, setting: Setting) -> Sequence[Block]:
    """The smallest pairs, or single columns if pairs would be lost in their noise."""
    return smallest_pairs(setting)


def pace(spec: Spec, measured: Sequence[Block], setting: Setting) -> Pace:
    """As many rounds as there are marginals worth a measurement."""
    return pace_of(spec, measured, setting, default=one_by_one(spec, measured, setting))


def plan(spec: Spec, measured: Sequence[Block], setting: Setting) -> Rounds:
    """A share for the one-way marginals, and the rest for the rounds."""
    return plan_rounds(spec, measured, setting, pace=pace(spec, measured, setting))


def memory_bytes(spec: Spec, measured: Sequence[Block], setting: Setting) -> int:
    """The fitted model, and what the rounds keep."""
    return fitted_in_rounds_bytes(spec, measured, setting, pace=pace(spec, measured, setting))
