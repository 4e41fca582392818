"""How `fem` spends: draws of equal price."""

import math
from collections.abc import Sequence

from scrim.spec.budget import rho_of_units
from scrim.spec.mechanism import Fem
from scrim.spec.workload import Block
from synth.planning.draws import even_draws, regret_bytes
from synth.planning.spending import Draws, Setting

FEM_ROUNDS, FEM_ROUNDS_PER_SIGNAL = 100, 2.4
"""Largest number of rounds, and rounds per square root of n sqrt(rho) (docs/defaults.md)."""


def choose_measured(spec: Fem, setting: Setting) -> Sequence[Block]:
    """The workload."""
    return setting.asked


def plan(spec: Fem, measured: Sequence[Block], setting: Setting) -> Draws:
    """Every selection gets an equal part."""
    signal = setting.expected_rows * math.sqrt(rho_of_units(setting.units))
    wanted = round(FEM_ROUNDS_PER_SIGNAL * math.sqrt(signal))
    rounds = spec.rounds or min(max(1, wanted), FEM_ROUNDS)
    return even_draws(rounds, spec.per_round, setting.units)


def memory_bytes(spec: Fem, measured: Sequence[Block], setting: Setting) -> int:
    """The query player's numbers for every query; the records are few."""
    return regret_bytes(measured, setting)
