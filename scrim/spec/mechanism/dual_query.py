"""`dual_query`: its parameters."""

from typing import ClassVar, Literal

from scrim.spec.mechanism.game import BestResponseSpec, Drawn, GameRounds, LearningRate


class DualQuery(BestResponseSpec):
    """Each record is a best response to queries drawn where the earlier records are wrong."""

    paper: ClassVar[str] = "Gaboardi et al. (2014), Dual Query; Liu, Vietri, Wu (2021), appendix B"

    name: Literal["dual_query"]
    """Always `dual_query`."""
    rounds: GameRounds = None
    """Number of rounds, and of records. Default: as many as the budget buys at `rate`."""
    samples: Drawn = 10
    """Queries drawn in each round (the paper's s)."""
    rate: LearningRate = 2.0
    """The query player's learning rate (the paper's eta) for which the number of rounds is chosen. The
    actual rate is what the budget buys: this rate, if the number of rows is as expected."""
