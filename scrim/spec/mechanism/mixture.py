"""Parameters of mechanisms whose model is a mixture of product distributions."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from scrim.spec.mechanism.adaptive import AdaptiveSpec, OpeningShare
from scrim.spec.mechanism.base import MechanismSpec

Steps = Annotated[int, Field(ge=1, le=100_000)]
Rate = Annotated[float, Field(gt=0, le=10)]


class MixtureSpec(MechanismSpec):
    """A mixture of equally weighted product distributions."""

    query_types: ClassVar[tuple[str, ...]] = ("marginals", "ranges", "binary_tree")

    components: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """Number of product distributions in the mixture."""
    steps: Steps = 1200
    """Upper bound on the optimiser's steps (per round, if there are rounds); it stops earlier when the
    fit is within the noise."""
    learning_rate: Rate = 0.1
    """Step size of the optimiser (Adam)."""


class NetworkSpec(MixtureSpec):
    """A mixture that a neural network generates from fixed noise."""

    latent: Annotated[int, Field(ge=1, le=4096)] = 64
    """Length of the noise vector of each component."""
    hidden: Annotated[list[Annotated[int, Field(ge=1, le=4096)]], Field(max_length=8)] = [128, 128]
    """Widths of the network's hidden layers."""


class OneShotMixtureSpec(MixtureSpec):
    """A mixture fitted once, to marginals that are measured once."""

    components: Annotated[int, Field(ge=1, le=100_000)] = 250
    """Number of product distributions in each member of the ensemble."""
    members: Annotated[int | None, Field(ge=1, le=64)] = None
    """Number of mixtures that are fitted to the same measurements from different starts, and released
    together as one. Null: 4, or to save time 2 where fewer than 5,000 or more than 100,000 counts are
    fitted, and 1 where fewer than 2,000 are."""
    steps: Steps = 3000
    """Upper bound on the optimiser's steps for each member. The number follows from how far the counts
    stand out from their noise; a fit stops earlier when it is as close as the noise."""
    one_way_share: Annotated[float | None, Field(gt=0, lt=1)] = None
    """Share of the budget for one-way marginals, if larger ones are measured as well. Null: 0.05, and more
    where pairs of columns are left out, up to a half: these are answered from single columns."""


class GenerativeSpec(AdaptiveSpec, NetworkSpec):
    """A generator network that is trained in every round."""

    opening_share: OpeningShare = 0.1
    steps: Steps = 150
    """Upper bound on the optimiser's steps in each round (the paper's T_max)."""
    learning_rate: Rate = 0.003
    """Step size of the optimiser (Adam)."""
    loss: Literal["squared", "absolute"] = "squared"
    """`squared`: squared residuals in units of their noise, in excess of one standard deviation.
    `absolute`: the paper's loss and stopping threshold, half of a moving average of the noisy largest
    errors."""
    average: bool = False
    """Release the moving average of the weights over the second half of the rounds (the paper's EMA)
    instead of the last weights."""

    @model_validator(mode="after")
    def _knows_the_second_half(self) -> Self:
        if self.average and self.schedule == "annealed":
            raise ValueError(
                "average covers the second half of the rounds, which is undefined when rounds are "
                "annealed; set average to false, or schedule to equal"
            )
        return self
