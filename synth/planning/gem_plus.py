"""How `gem_plus` spends: one-way marginals first, then annealed rounds among pairs."""

from collections.abc import Sequence

from scrim.spec.mechanism import GemPlus
from scrim.spec.workload import Block
from synth.planning.candidates import smallest_pairs
from synth.planning.mixture import fitted_in_rounds_bytes
from synth.planning.pace import Pace, columns_of, one_by_one, pace_of
from synth.planning.rounds import plan_rounds
from synth.planning.spending import Rounds, Setting

MEASUREMENTS_OF_MIXTURES = 8
"""Half of AIM's: every round measures several marginals."""


def choose_measured(spec: GemPlus, setting: Setting) -> Sequence[Block]:
    """Pairs: the rounds select which of them to measure."""
    return smallest_pairs(setting)


def pace(spec: GemPlus, measured: Sequence[Block], setting: Setting) -> Pace:
    """One measurement per column in each round, so that there are few fits.

    If rounds are equal, the total number of measurements is that of the other mixtures.
    """
    per_round = len(columns_of(measured))
    rounds = round(one_by_one(spec, measured, setting).rounds / per_round)
    return pace_of(
        spec,
        measured,
        setting,
        default=Pace(rounds, per_round),
        per_column=MEASUREMENTS_OF_MIXTURES,
    )


def plan(spec: GemPlus, measured: Sequence[Block], setting: Setting) -> Rounds:
    """A share for the one-way marginals, and the rest for the rounds."""
    return plan_rounds(spec, measured, setting, pace=pace(spec, measured, setting))


def memory_bytes(spec: GemPlus, measured: Sequence[Block], setting: Setting) -> int:
    """The fitted model, and what the rounds keep."""
    return fitted_in_rounds_bytes(spec, measured, setting, pace=pace(spec, measured, setting))
