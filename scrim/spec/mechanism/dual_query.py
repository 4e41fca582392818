"""`dual_query`: its parameters."""

from typing import ClassVar, Literal

from scrim.spec.mechanism.game import BestResponseSpec, Drawn, GameRounds, LearningRate


class DualQuery(BestResponseSpec):
    """Records that answer, one by one, to queries drawn where the records before them are wrong."""

    paper: ClassVar[str] = "Gaboardi et al. (2014), Dual Query; Liu, Vietri, Wu (2021), appendix B"

    name: Literal["dual_query"]
    """Always `dual_query`."""
    rounds: GameRounds = None
    """Number of rounds, and of records. Where not given: as many as the budget buys at `rate`."""
    samples: Drawn = 10
    """Queries drawn in each round (the paper's s)."""
    rate: LearningRate = 2.0
    """The query player's learning rate (the paper's eta) for which the number of rounds is chosen. The
    rate in use is what the budget buys: this one, where there are as many rows as expected."""
