"""Mechanisms that fit a mixture of product distributions."""

from itertools import combinations
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from synth.spec.mechanism.base import OneShotSpec


class RelaxedProjection(OneShotSpec):
    """A mixture of product distributions fitted to marginals that are measured once."""

    paper: ClassVar[str] = (
        "Aydore et al. (2021); Liu, Tang, Vietri, Wu (2023), appendix B.4 (RP), with softmax as in "
        "Liu, Vietri, Wu (2021), appendix B.2"
    )

    name: Literal["relaxed_projection"]
    """Always `relaxed_projection`."""
    components: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """Number of product distributions in the mixture."""
    steps: Annotated[int, Field(ge=1, le=100_000)] = 1500
    """Upper bound on the optimiser's steps; it stops earlier when the fit is as close as the noise."""
    learning_rate: Annotated[float, Field(gt=0, le=10)] = 0.2
    """Step size of the optimiser (Adam)."""

    def choose_measured(self, asked: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """All one- and two-way marginals below the asked ones.

        Their cells are large against the noise, and a mixture of products carries what they say
        over to the higher orders; measuring those directly spreads the budget too thin.
        """
        chosen = {
            subset: None
            for order in (1, 2)
            for marginal in asked
            for subset in combinations(marginal, order)
        }
        return list(chosen)
