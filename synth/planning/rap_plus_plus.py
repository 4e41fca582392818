"""How `rap_plus_plus` spends: single columns first, then few rounds of many queries."""

from collections.abc import Sequence

from scrim.spec.mechanism import RapPlusPlus
from scrim.spec.workload import Block
from synth.planning.candidates import as_asked
from synth.planning.pace import Pace, are_single, one_by_one, pace_of, single_queries
from synth.planning.rounds import plan_rounds
from synth.planning.spending import Rounds, Setting

RELAXED_ROUNDS = 5
"""Default number of rounds; each round anneals its soft thresholds from the beginning."""
ROW_COPIES = 5
"""Number of rows of declared values that are drawn for each relaxed row."""


def choose_measured(spec: RapPlusPlus, setting: Setting) -> Sequence[Block]:
    """What is asked, as far as a fit can take it."""
    return as_asked(setting)


def pace(spec: RapPlusPlus, measured: Sequence[Block], setting: Setting) -> Pace:
    """Few rounds of many queries, as in the paper."""
    wanted = (
        single_queries(setting)
        if are_single(measured)
        else one_by_one(spec, measured, setting).rounds
    )
    default = Pace(RELAXED_ROUNDS, round(wanted / RELAXED_ROUNDS))
    return pace_of(spec, measured, setting, default=default)


def plan(spec: RapPlusPlus, measured: Sequence[Block], setting: Setting) -> Rounds:
    """A share for single columns, and the rest for the rounds."""
    return plan_rounds(spec, measured, setting, pace=pace(spec, measured, setting))


def memory_bytes(spec: RapPlusPlus, measured: Sequence[Block], setting: Setting) -> None:
    """Unknown."""
    return
