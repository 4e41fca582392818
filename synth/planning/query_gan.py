"""How `query_gan` spends: draws that cost more from round to round, or rounds of measured critics."""

from collections.abc import Sequence

from scrim.spec.mechanism import QueryGan
from scrim.spec.workload import Block
from synth.planning.candidates import smallest_pairs
from synth.planning.draws import growing_draws, regret_bytes, rounds_at
from synth.planning.memory import SINGLE, joint_table_bytes
from synth.planning.mixture import generator_bytes
from synth.planning.pace import one_by_one, pace_of
from synth.planning.rounds import plan_rounds
from synth.planning.spending import Draws, Rounds, Setting

DRAWN_CRITICS = 5
"""Default number of critics drawn per round."""
KEPT_COMPONENTS = 4000
"""Largest number of released product distributions, over all generators."""


def choose_measured(spec: QueryGan, setting: Setting) -> Sequence[Block]:
    """The smallest pairs, or single columns if pairs would be lost in their noise."""
    return smallest_pairs(setting)


def plan(spec: QueryGan, measured: Sequence[Block], setting: Setting) -> Draws | Rounds:
    """Draws of increasing price, or rounds of selecting and measuring."""
    if spec.critic == "measured":
        return plan_rounds(
            spec,
            measured,
            setting,
            pace=pace_of(spec, measured, setting, default=one_by_one(spec, measured, setting)),
        )
    per_round = spec.per_round or DRAWN_CRITICS
    rounds = spec.rounds or rounds_at(spec.rate, per_round, setting)
    return growing_draws(rounds, per_round, setting.units)


def memory_bytes(spec: QueryGan, measured: Sequence[Block], setting: Setting) -> int:
    """One generator, the kept components of all generators, and the critics' numbers."""
    codes = sum(setting.schema.sizes.values())
    return (
        generator_bytes(spec, codes)
        + 2 * SINGLE * KEPT_COMPONENTS * codes
        + joint_table_bytes(spec.components, measured, setting.schema)
        + regret_bytes(measured, setting)
    )
