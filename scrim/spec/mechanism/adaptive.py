"""The loop that every adaptive mechanism shares: select, measure, update."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from scrim.spec.errors import SpecError
from scrim.spec.mechanism.base import AnnealedRounds, MechanismSpec, Plan, Rounds, Setting
from scrim.spec.schema import Schema
from scrim.spec.workload import Group, MarginalGroup, TreeGroup

DEFAULT_ROUNDS = 20
OPENING_LEVELS = 5
"""Levels of the trees by which numbers without bins are opened."""


class AdaptiveSpec(MechanismSpec):
    """Parameters of the Adaptive Measurements loop (Liu, Vietri, Wu 2021, algorithm 1)."""

    measurements_per_column: ClassVar[int] = 16
    """How many measurements annealed rounds make at most, for each column (AIM's T = 16 d)."""
    noise_power: ClassVar[float] = 1.0
    """What noise adds up to over n cells of a fitted marginal grows as this power of n: 1 where a fit
    follows the noise of every cell, as AIM assumes; less where it smooths."""

    rounds: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Number of rounds of select, measure, update; where they are annealed, at most so many. Where not
    given: one per candidate, to a limit; where they are annealed, for a number of measurements per column."""
    schedule: Literal["equal", "annealed"] = "equal"
    """`equal`: every round has the same budget. `annealed`, as in AIM: half the noise, for four times
    the budget, from the round on after one that changed the model no more than noise would have;
    until the budget is used up."""
    score: Literal["largest_error", "total_error"] = "largest_error"
    """What a round selects by. `largest_error`: that of a candidate's queries. `total_error`, as in AIM:
    the sum of its absolute errors, less what the noise of measuring it would add up to, times the
    number of its columns in each of the asked marginals."""
    per_round: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Number of queries or marginals selected and measured in each round. Where not given: one, or
    several where the candidates are single queries of a large class."""
    selection_share: Annotated[float, Field(gt=0, lt=1)] = 0.25
    """The paper's alpha: how the budget of a round is split between selecting and measuring. The
    share of rho that goes to selecting is alpha^2 / (alpha^2 + (1 - alpha)^2)."""
    opening_share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the budget for measuring the distribution of every column once, before the first
    round: one-way marginals, and binary trees of numbers without bins."""
    select: Literal["marginals", "queries"] = "marginals"
    """Whether a round selects and measures whole marginals and trees or, as in the paper, single
    cells. Ranges, prefixes and halfspaces are always single."""

    def candidates(self, measured: Sequence[Group], schema: Schema) -> int:
        """How many things a round can choose among."""
        single = self.select == "queries"
        return sum(g.size(schema) if single or not g.is_whole else 1 for g in measured)

    def default_pace(self, measured: Sequence[Group], setting: Setting) -> tuple[int, int]:
        """How many rounds there are, and how many measurements in each, where nobody said."""
        return DEFAULT_ROUNDS, 1

    def pace(self, measured: Sequence[Group], setting: Setting) -> tuple[int, int]:
        """How many rounds there are, and how many measurements in each."""
        candidates = self.candidates(measured, setting.schema)
        rounds, per_round = self.default_pace(measured, setting)
        per_round = self.per_round or max(1, min(per_round, candidates))
        if self.schedule == "annealed":
            rounds = math.ceil(self.measurements_per_column * len(columns_of(measured)) / per_round)
        else:
            rounds = max(1, min(rounds, candidates))
        return self.rounds or rounds, per_round

    def opened(self, measured: Sequence[Group], schema: Schema) -> Sequence[Group]:
        """The distribution of every column that some candidate is about."""
        if not self.opening_share:
            return []
        return [
            MarginalGroup((name,)) if name in schema.sizes else TreeGroup((name,), OPENING_LEVELS)
            for name in columns_of(measured)
        ]

    def plan(self, measured: Sequence[Group], setting: Setting) -> Plan:
        """Divide over T k selections and measurements, which the paper's theorem 1 forgets to do."""
        first = self.opened(measured, setting.schema)
        opened = tuple(moved_of(first, setting))
        public = tuple(dict.fromkeys(g for g in (*first, *measured) if not is_moved(g, setting)))
        opening = (
            math.floor(Fraction(self.opening_share) * setting.units / len(opened)) if opened else 0
        )
        rounds, per_round = self.pace(measured, setting)
        reserved = setting.units - opening * len(opened)
        each = reserved // (rounds * per_round)
        weight = self.selection_share**2 / (
            self.selection_share**2 + (1 - self.selection_share) ** 2
        )
        select = math.floor(weight * each)
        if min(select, each - select) < 1:
            raise SpecError(
                f"{rounds} rounds of {per_round} leave no budget for each; ask for fewer rounds"
            )
        planned = Rounds(
            public=public,
            opened=opened if opening else (),
            opening=opening,
            rounds=rounds,
            per_round=per_round,
            select=select * per_round,
            measure=each - select,
        )
        if self.schedule == "annealed":
            return AnnealedRounds(**vars(planned), reserved=reserved)
        return planned


def is_moved(group: Group, setting: Setting) -> bool:
    """Whether some unit can change its counts; if none can, they are public."""
    return group.sensitivity(setting.schema, setting.protection).l2_squared > 0


def moved_of(groups: Sequence[Group], setting: Setting) -> list[Group]:
    """Those that some unit can change."""
    return [group for group in groups if is_moved(group, setting)]


def columns_of(groups: Sequence[Group]) -> list[str]:
    """Every column that some group is about."""
    return list(dict.fromkeys(name for group in groups for name in group.attributes))
