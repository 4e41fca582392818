"""How `dual_query` spends: draws that cost more from round to round."""

from collections.abc import Sequence

from scrim.spec.mechanism import DualQuery
from scrim.spec.workload import Block
from synth.planning.draws import growing_draws, regret_bytes, rounds_at
from synth.planning.spending import Draws, Setting


def choose_measured(spec: DualQuery, setting: Setting) -> Sequence[Block]:
    """The workload."""
    return setting.asked


def plan(spec: DualQuery, measured: Sequence[Block], setting: Setting) -> Draws:
    """A draw after t rounds costs t^2 times as much as one after the first round."""
    rounds = spec.rounds or rounds_at(spec.rate, spec.samples, setting)
    return growing_draws(rounds, spec.samples, setting.units)


def memory_bytes(spec: DualQuery, measured: Sequence[Block], setting: Setting) -> int:
    """The query player's numbers for every query; the records are few."""
    return regret_bytes(measured, setting)
