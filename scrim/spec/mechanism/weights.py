"""Parameters of mechanisms that reweight a distribution."""

from typing import Annotated, Literal

from pydantic import Field

from scrim.spec.mechanism.adaptive import AdaptiveSpec


class MultiplicativeWeightsSpec(AdaptiveSpec):
    """Parameters shared by all mechanisms with multiplicative weights."""

    past_measurements: bool = True
    """Update with all measurements so far in every round, not only with the newest."""
    passes: Annotated[int, Field(ge=1, le=10_000)] = 40
    """Upper bound on the passes over the measurements in one round."""
    output: Literal["last", "average"] = "last"
    """Release the last distribution, or the average over all rounds."""


class EntropyProjectionSpec(AdaptiveSpec):
    """Parameters shared by all mechanisms with entropy projection."""

    passes: Annotated[int, Field(ge=1, le=10_000)] = 25
    """Upper bound on the sweeps over the measurements in one round (the paper's T_max)."""
    tolerance: Annotated[float, Field(ge=0, le=100)] = 1.0
    """The paper's gamma, for a marginal: it is projected if its squared residuals exceed those of noise by
    this many of their standard deviations."""
