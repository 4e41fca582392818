"""`rap_softmax`: its parameters."""

from typing import ClassVar, Literal

from scrim.spec.mechanism.adaptive import AdaptiveSpec, OpeningShare
from scrim.spec.mechanism.mixture import MixtureSpec, Rate, Steps


class RapSoftmax(AdaptiveSpec, MixtureSpec):
    """Relaxed projection with softmax, fitted in rounds to the queries that it answers worst."""

    paper: ClassVar[str] = "Liu, Vietri, Wu (2021), appendix B.2 (RAP-softmax)"

    name: Literal["rap_softmax"]
    """Always `rap_softmax`."""
    opening_share: OpeningShare = 0.1
    steps: Steps = 100
    """Upper bound on the optimiser's steps in each round."""
    learning_rate: Rate = 0.1
    """Step size of the optimiser (Adam)."""
