"""The loop that every adaptive mechanism shares: select, measure, update."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field

from synth.spec.errors import SpecError
from synth.spec.mechanism.base import MechanismSpec, Rounds

DEFAULT_ROUNDS = 20


class AdaptiveSpec(MechanismSpec):
    """Parameters of the Adaptive Measurements loop (Liu, Vietri, Wu 2021, algorithm 1)."""

    rounds: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Number of rounds of select, measure, update. Where not given: one per marginal, to a limit."""
    per_round: Annotated[int, Field(ge=1, le=1000)] = 1
    """Number of queries or marginals selected and measured in each round."""
    selection_share: Annotated[float, Field(gt=0, lt=1)] = 0.25
    """The paper's alpha: how the budget of a round is split between selecting and measuring. The
    share of rho that goes to selecting is alpha^2 / (alpha^2 + (1 - alpha)^2)."""
    opening_share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the budget for measuring all one-way marginals once, before the first round."""
    select: Literal["marginals", "queries"] = "marginals"
    """Whether a round selects and measures whole marginals or, as in the paper, single cells."""

    def default_rounds(self, marginals: int, units: int) -> int:
        """How many rounds there are where nobody said."""
        return min(marginals, DEFAULT_ROUNDS)

    def plan(self, measured: Sequence[tuple[str, ...]], units: int) -> Rounds:
        """Divide over T k selections and measurements, which the paper's theorem 1 forgets to do."""
        columns = {name for marginal in measured for name in marginal}
        opening = math.floor(Fraction(self.opening_share) * units / len(columns))
        rounds = self.rounds or self.default_rounds(len(measured), units)
        each = (units - opening * len(columns)) // (rounds * self.per_round)
        weight = self.selection_share**2 / (
            self.selection_share**2 + (1 - self.selection_share) ** 2
        )
        select = math.floor(weight * each)
        if min(select, each - select) < 1:
            raise SpecError(
                f"{rounds} rounds of {self.per_round} leave no budget for each; ask for fewer rounds"
            )
        return Rounds(
            opening=opening,
            rounds=rounds,
            per_round=self.per_round,
            select=select * self.per_round,
            measure=each - select,
        )
