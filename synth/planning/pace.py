"""The number of rounds, and the number of measurements in each."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from scrim.spec.budget import rho_of_units
from scrim.spec.mechanism import AdaptiveSpec
from scrim.spec.schema import Schema
from scrim.spec.workload import Block
from synth.planning.spending import Setting

DEFAULT_ROUNDS = 20
"""Rounds of mechanisms whose number of rounds was not studied."""
MEASUREMENTS_PER_COLUMN = 16
"""Largest number of measurements per column in annealed rounds (AIM's T = 16 d)."""
ROUNDS_AT_ONE_RHO, STUDIED_ROWS, STUDIED_MARGINALS = 200, 50_000, 78
"""Best number of rounds at rho = 1, for this number of rows and of candidate marginals."""
QUERIES_FOR_A_MARGINAL = 7
"""Number of single queries that are measured in place of one marginal."""


@dataclass(frozen=True)
class Pace:
    """A number of rounds, and of measurements in each."""

    rounds: int
    per_round: int = 1


def pace_of(
    spec: AdaptiveSpec,
    measured: Sequence[Block],
    setting: Setting,
    *,
    default: Pace,
    per_column: int = MEASUREMENTS_PER_COLUMN,
) -> Pace:
    """Return the pace of the spec, or else the default, limited by the number of candidates.

    Annealed rounds make `per_column` measurements for each column.
    """
    candidates = count_candidates(spec, measured, setting.schema)
    per_round = spec.per_round or max(1, min(default.per_round, candidates))
    if spec.schedule == "annealed":
        rounds = math.ceil(per_column * len(columns_of(measured)) / per_round)
    else:
        rounds = max(1, min(default.rounds, candidates))
    return Pace(spec.rounds or rounds, per_round)


def count_candidates(spec: AdaptiveSpec, measured: Iterable[Block], schema: Schema) -> int:
    """The number of candidates in a round."""
    single = spec.select == "queries"
    return sum(g.size(schema) if single or not g.is_whole else 1 for g in measured)


def worth_measuring(candidates: int, setting: Setting) -> int:
    """The number of marginals worth measuring (docs/defaults.md).

    It grows with the budget, the number of rows and the number of candidates.
    """
    signal = rho_of_units(setting.units) * (setting.expected_rows / STUDIED_ROWS) ** 2
    return round(ROUNDS_AT_ONE_RHO * math.sqrt(math.sqrt(signal) * candidates / STUDIED_MARGINALS))


def one_by_one(spec: AdaptiveSpec, measured: Sequence[Block], setting: Setting) -> Pace:
    """One round for each marginal worth measuring."""
    return Pace(worth_measuring(count_candidates(spec, measured, setting.schema), setting))


def single_queries(setting: Setting) -> int:
    """The number of single queries worth measuring in a large class."""
    return QUERIES_FOR_A_MARGINAL * worth_measuring(STUDIED_MARGINALS, setting)


def are_single(measured: Sequence[Block]) -> bool:
    """Whether some candidates are single queries rather than whole tables."""
    return any(not block.is_whole for block in measured)


def columns_of(blocks: Iterable[Block]) -> list[str]:
    """All columns of the blocks, each once."""
    return list(dict.fromkeys(chain.from_iterable(block.attributes for block in blocks)))
