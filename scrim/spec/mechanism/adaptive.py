"""The parameters that all mechanisms with rounds of select, measure, update share."""

from typing import Annotated, Literal

from pydantic import Field

from scrim.spec.mechanism.base import MechanismSpec

OpeningShare = Annotated[
    float,
    Field(
        ge=0,
        lt=1,
        description="Share of the budget for measuring all one-way marginals once, before the first round.",
    ),
]
Schedule = Annotated[
    Literal["equal", "annealed"],
    Field(
        description="`equal`: every round has the same budget. `annealed`, as in AIM: a round that changed "
        "the model no more than noise would have halves the noise of the rounds after it, for four times the "
        "budget each, until the budget is used up."
    ),
]
Score = Annotated[
    Literal["largest_error", "total_error"],
    Field(
        description="What a round selects by. `largest_error`: that of a candidate's queries. "
        "`total_error`, as in AIM: the sum of its absolute errors, less what the noise of measuring it would "
        "add up to, times the number of its columns in each of the asked marginals."
    ),
]


class AdaptiveSpec(MechanismSpec):
    """Parameters of the Adaptive Measurements loop (Liu, Vietri, Wu 2021, algorithm 1)."""

    rounds: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Number of rounds of select, measure, update; the maximum where they are annealed. Where not
    given: one per candidate, to a limit; where they are annealed, for a number of measurements per column."""
    schedule: Schedule = "equal"
    score: Score = "largest_error"
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
