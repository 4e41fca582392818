"""`query_gan`: its parameters."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from scrim.spec.mechanism.adaptive import AdaptiveSpec
from scrim.spec.mechanism.game import LearningRate
from scrim.spec.mechanism.mixture import MixtureSpec, Steps


class QueryGan(AdaptiveSpec, MixtureSpec):
    """Generators that are trained only on critics; their mixture is released."""

    paper: ClassVar[str] = (
        "a thesis on QueryGAN, algorithm 3; critics drawn as in Gaboardi et al. (2014), since the "
        "thesis's own oracle is not private"
    )

    name: Literal["query_gan"]
    """Always `query_gan`."""
    critic: Literal["drawn", "measured"] = "drawn"
    """`drawn`: queries and negations, drawn where the mixture of all generators so far is wrong.
    `measured`: the queries that it answers worst are selected and measured, as in adaptive mechanisms."""
    per_round: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Number of critics in each round. Default: five if they are drawn, one if they are measured."""
    rate: LearningRate = 2.0
    """The critics' learning rate (eta) for which the number of rounds is chosen, if they are drawn."""
    opening_share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the budget for measuring all one-way marginals once, before measured critics."""
    components: Annotated[int, Field(ge=1, le=100_000)] = 200
    """Number of product distributions in each generator."""
    steps: Steps = 10
    """Steps of gradient descent in each round. With measured critics, every step adds a generator."""
    learning_rate: Annotated[float, Field(gt=0, le=10_000)] = 20.0
    """Step size, for the logits of each component."""

    @model_validator(mode="after")
    def _fits_the_critic(self) -> Self:
        unused = ("rate",) if self.critic == "measured" else ("selection_share", "opening_share")
        for name in unused:
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(
                    f"{name} has no effect when critic is {self.critic!r}; leave it out"
                )
        return self
