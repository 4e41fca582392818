"""Mechanisms that fit a mixture of product distributions."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from synth.spec.budget import rho_of_units
from synth.spec.mechanism.adaptive import AdaptiveSpec
from synth.spec.mechanism.base import MechanismSpec, OneShotSpec
from synth.spec.memory import (
    BYTES_PER_QUERY,
    DOUBLE,
    KEPT_PLANS,
    OUTPUT_COPIES,
    SINGLE,
    TABLE_COPIES,
    cells_of,
    joint_table_bytes,
    network_bytes,
)

ROUNDS_AT_ONE_RHO = 200

Steps = Annotated[int, Field(ge=1, le=100_000)]
Rate = Annotated[float, Field(gt=0, le=10)]


class MixtureSpec(MechanismSpec):
    """A mixture of equally weighted product distributions."""

    components: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """Number of product distributions in the mixture."""
    steps: Steps = 1200
    """Upper bound on the optimiser's steps (in each round, where there are rounds); it stops earlier
    when the fit is as close as the noise."""
    learning_rate: Rate = 0.1
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

    def memory_bytes(
        self,
        sizes: Mapping[str, int],
        measured: Sequence[tuple[str, ...]],
        asked: Sequence[tuple[str, ...]],
    ) -> int:
        """What is fitted, the tables that it is multiplied from, and what it is compared with."""
        return (
            self.generator_bytes(sum(sizes.values()))
            + joint_table_bytes(self.components, measured, sizes)
            + BYTES_PER_QUERY * cells_of(measured, sizes)
        )

    def generator_bytes(self, codes: int) -> int:
        """A table of one number for each component and code."""
        return SINGLE * TABLE_COPIES * self.components * codes


class NetworkSpec(MixtureSpec):
    """A mixture that a neural network generates from fixed noise."""

    latent: Annotated[int, Field(ge=1, le=4096)] = 64
    """Length of the noise vector of each component."""
    hidden: Annotated[list[Annotated[int, Field(ge=1, le=4096)]], Field(max_length=8)] = [128, 128]
    """Widths of the network's hidden layers."""

    def generator_bytes(self, codes: int) -> int:
        """The network, and what it puts out for each component and code."""
        network = network_bytes(
            self.components,
            latent=self.latent,
            hidden=self.hidden,
            outputs=codes,
        )
        return network + SINGLE * OUTPUT_COPIES * self.components * codes


class OneShotMixtureSpec(OneShotSpec, MixtureSpec):
    """A mixture fitted once, to marginals that are measured once."""

    one_way_share: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """Share of the budget for one-way marginals, where larger ones are measured as well."""

    def weights(self, measured: Sequence[tuple[str, ...]]) -> list[Fraction]:
        """One-way marginals share a part of their own: they are few, and everything rests on them."""
        is_single = [len(marginal) == 1 for marginal in measured]
        count = Counter(is_single)
        if len(count) == 1:
            return [Fraction(1)] * len(measured)
        share = Fraction(self.one_way_share)
        weight = {True: share / count[True], False: (1 - share) / count[False]}
        return [weight[single] for single in is_single]


class RelaxedProjection(OneShotMixtureSpec):
    """A mixture of product distributions fitted to marginals that are measured once."""

    paper: ClassVar[str] = (
        "Aydore et al. (2021); Liu, Tang, Vietri, Wu (2023), appendix B.4 (RP), with softmax as in "
        "Liu, Vietri, Wu (2021), appendix B.2"
    )

    name: Literal["relaxed_projection"]
    """Always `relaxed_projection`."""


class GenerativeNetwork(OneShotMixtureSpec, NetworkSpec):
    """A generator network fitted to marginals that are measured once."""

    paper: ClassVar[str] = "Liu, Tang, Vietri, Wu (2023), appendix B.4 (GN)"

    name: Literal["generative_network"]
    """Always `generative_network`."""
    learning_rate: Rate = 0.003
    """Step size of the optimiser (Adam)."""


class AdaptiveMixtureSpec(AdaptiveSpec, MixtureSpec):
    """A mixture that is fitted again after every round."""

    opening_share: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Share of the budget for measuring all one-way marginals once, before the first round."""

    def default_rounds(self, marginals: int, units: int) -> int:
        """The larger the budget, the more marginals are worth a measurement (docs/defaults.md)."""
        return max(
            1, min(marginals, round(ROUNDS_AT_ONE_RHO * math.sqrt(math.sqrt(rho_of_units(units)))))
        )

    def choose_measured(self, asked: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """All two-way marginals below the asked ones; the opening measures the one-way ones."""
        chosen = super().choose_measured(asked)
        return [marginal for marginal in chosen if len(marginal) == 2] or chosen

    def memory_bytes(
        self,
        sizes: Mapping[str, int],
        measured: Sequence[tuple[str, ...]],
        asked: Sequence[tuple[str, ...]],
    ) -> int:
        """Every round measures other marginals: products of their own, and plans that are kept."""
        rounds = min(len(measured), self.rounds or ROUNDS_AT_ONE_RHO)
        share = min(1.0, rounds * self.per_round / len(measured))
        plan = DOUBLE * share * cells_of(measured, sizes)
        widest = sum(max(sizes[name] for name in marginal) for marginal in measured)
        factors = 2 * SINGLE * self.components * share * widest
        extra = round(min(rounds, KEPT_PLANS) * plan + factors)
        return super().memory_bytes(sizes, measured, asked) + extra


class GenerativeSpec(AdaptiveMixtureSpec, NetworkSpec):
    """A generator network that is trained in every round."""

    steps: Steps = 150
    """Upper bound on the optimiser's steps in each round (the paper's T_max)."""
    learning_rate: Rate = 0.003
    """Step size of the optimiser (Adam)."""
    loss: Literal["squared", "absolute"] = "squared"
    """`squared`: residuals in units of their noise, beyond one standard deviation. `absolute`: the
    paper's loss and stopping threshold, half of a moving average of the noisy largest errors."""
    average: bool = False
    """Release the moving average of the weights over the second half of the rounds (the paper's EMA)
    instead of the last weights."""


class Gem(GenerativeSpec):
    """A generator network, taught round by round where it is worst."""

    paper: ClassVar[str] = "Liu, Vietri, Wu (2021), section 2.2 and appendix D (GEM)"

    name: Literal["gem"]
    """Always `gem`."""


class RapSoftmax(AdaptiveMixtureSpec):
    """Relaxed projection with softmax, taught round by round where it is worst."""

    paper: ClassVar[str] = "Liu, Vietri, Wu (2021), appendix B.2 (RAP-softmax)"

    name: Literal["rap_softmax"]
    """Always `rap_softmax`."""
    steps: Steps = 100
    """Upper bound on the optimiser's steps in each round."""
    learning_rate: Rate = 0.1
    """Step size of the optimiser (Adam)."""


class Rap(AdaptiveMixtureSpec):
    """The original relaxed adaptive projection: rows of numbers that need not add up."""

    paper: ClassVar[str] = "Aydore et al. (2021); Liu, Vietri, Wu (2021), appendix B.2 (RAP)"

    name: Literal["rap"]
    """Always `rap`."""
    steps: Steps = 200
    """Upper bound on the optimiser's steps in each round."""
    learning_rate: Rate = 0.005
    """Step size of the optimiser (Adam)."""
