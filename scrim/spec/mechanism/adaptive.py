"""Parameters of all mechanisms with rounds of select, measure, update."""

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
        description="`equal`: every round has the same budget. `annealed`, as in AIM: if a round changes the "
        "model no more than noise would, the later rounds have half the noise and four times the budget, "
        "until the budget is used up."
    ),
]
Score = Annotated[
    Literal["largest_error", "total_error"],
    Field(
        description="How a round scores candidates. `largest_error`: the largest error of the candidate's "
        "queries. `total_error`, as in AIM: the sum of its absolute errors minus the expected total noise of "
        "measuring it, times a weight: its number of columns in common with each marginal of the workload, "
        "summed over the workload."
    ),
]


class AdaptiveSpec(MechanismSpec):
    """Parameters of the Adaptive Measurements loop (Liu, Vietri, Wu 2021, algorithm 1)."""

    rounds: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Number of rounds of select, measure, update; the maximum if rounds are annealed. Default: at most one
    per candidate, depending on the mechanism; if annealed, a fixed number of measurements per column."""
    schedule: Schedule = "equal"
    score: Score = "largest_error"
    per_round: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Number of queries or marginals selected and measured in each round. Default: one, or several if
    the candidates are single queries of a large class."""
    selection_share: Annotated[float, Field(gt=0, lt=1)] = 0.25
    """The paper's alpha: how the budget of a round is split between selecting and measuring. The
    share of rho that goes to selecting is alpha^2 / (alpha^2 + (1 - alpha)^2)."""
    opening_share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the budget for measuring the distribution of every column once, before the first
    round: one-way marginals, and binary trees of numbers without bins."""
    select: Literal["marginals", "queries"] = "marginals"
    """Whether a round selects and measures whole marginals and trees or, as in the paper, single
    cells. Ranges, prefixes and halfspaces are always single."""
