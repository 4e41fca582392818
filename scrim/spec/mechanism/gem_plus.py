"""`gem_plus`: its parameters."""

from typing import ClassVar, Literal

from scrim.spec.mechanism.adaptive import AdaptiveSpec, OpeningShare, Schedule, Score
from scrim.spec.mechanism.mixture import NetworkSpec, Rate, Steps


class GemPlus(AdaptiveSpec, NetworkSpec):
    """A generator network trained in rounds, which get more budget once the model stops improving (AIM)."""

    paper: ClassVar[str] = (
        "GEM+ (2025), arXiv 2511.09672: the network of Liu, Vietri, Wu (2021), with the selection and "
        "the budget of McKenna et al. (2022), AIM"
    )

    name: Literal["gem_plus"]
    """Always `gem_plus`."""
    opening_share: OpeningShare = 0.1
    schedule: Schedule = "annealed"
    score: Score = "total_error"
    steps: Steps = 600
    """Upper bound on the optimiser's steps in each round."""
    learning_rate: Rate = 0.003
    """Step size of the optimiser (Adam)."""
