"""`rap`: its parameters."""

from typing import ClassVar, Literal

from scrim.spec.mechanism.adaptive import AdaptiveSpec, OpeningShare
from scrim.spec.mechanism.mixture import MixtureSpec, Rate, Steps


class Rap(AdaptiveSpec, MixtureSpec):
    """The original relaxed adaptive projection: the numbers of a row need not sum to one."""

    paper: ClassVar[str] = "Aydore et al. (2021); Liu, Vietri, Wu (2021), appendix B.2 (RAP)"

    name: Literal["rap"]
    """Always `rap`."""
    opening_share: OpeningShare = 0.1
    steps: Steps = 200
    """Upper bound on the optimiser's steps in each round."""
    learning_rate: Rate = 0.005
    """Step size of the optimiser (Adam)."""
