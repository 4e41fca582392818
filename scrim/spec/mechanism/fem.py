"""`fem`: its parameters."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from scrim.spec.mechanism.game import BestResponseSpec, Drawn, GameRounds


class Fem(BestResponseSpec):
    """Each record is a perturbed best response to all queries selected so far."""

    paper: ClassVar[str] = (
        "Vietri et al. (2020), New Oracle-Efficient Algorithms; Liu, Vietri, Wu (2021), appendix B"
    )

    name: Literal["fem"]
    """Always `fem`."""
    rounds: GameRounds = None
    """Number of rounds. Default: grows with the budget, up to 100."""
    per_round: Drawn = 1
    """Queries selected in each round."""
    samples: Annotated[int, Field(ge=1, le=1000)] = 10
    """Records found in each round, each with its own perturbation (the paper's s)."""
    perturbation: Annotated[float, Field(gt=0, le=1e4)] = 1.0
    """Mean of the exponential noise on each code, in units of one selected query. It is part of the
    search for records; privacy does not depend on it."""
