"""Mechanisms that fit a mixture of product distributions."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from scrim.spec.budget import rho_of_units
from scrim.spec.mechanism.adaptive import AdaptiveSpec, columns_of
from scrim.spec.mechanism.base import MechanismSpec, OneShotSpec, Setting, one_way_apart
from scrim.spec.mechanism.orders import by_forecast_error, smallest_pairs
from scrim.spec.memory import (
    BYTES_PER_QUERY,
    DOUBLE,
    KEPT_PLANS,
    OUTPUT_COPIES,
    SINGLE,
    TABLE_COPIES,
    joint_table_bytes,
    network_bytes,
    queries_of,
)
from scrim.spec.workload import Group

ROUNDS_AT_ONE_RHO, STUDIED_ROWS, STUDIED_MARGINALS = 200, 50_000, 78
"""Rounds that were best on a table of so many rows, with so many marginals to choose from."""


def worth_measuring(candidates: int, setting: Setting) -> int:
    """How many marginals are worth a measurement of their own (docs/defaults.md).

    The more, the larger the budget and the table, and the more there are to tell apart.
    """
    signal = rho_of_units(setting.units) * (setting.rows / STUDIED_ROWS) ** 2
    return round(ROUNDS_AT_ONE_RHO * math.sqrt(math.sqrt(signal) * candidates / STUDIED_MARGINALS))


Steps = Annotated[int, Field(ge=1, le=100_000)]
Rate = Annotated[float, Field(gt=0, le=10)]


class MixtureSpec(MechanismSpec):
    """A mixture of equally weighted product distributions."""

    query_types: ClassVar[tuple[str, ...]] = ("marginals", "ranges", "binary_tree")

    components: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """Number of product distributions in the mixture."""
    steps: Steps = 1200
    """Upper bound on the optimiser's steps (in each round, where there are rounds); it stops earlier
    when the fit is as close as the noise."""
    learning_rate: Rate = 0.1
    """Step size of the optimiser (Adam)."""

    def choose_measured(self, setting: Setting) -> list[Group]:
        """Marginals of the orders with the least forecast error; all else that is asked, as it is."""
        return by_forecast_error(setting)

    def memory_bytes(self, setting: Setting, measured: Sequence[Group]) -> int:
        """What is fitted, the tables that it is multiplied from, and what it is compared with."""
        return (
            self.generator_bytes(sum(setting.schema.sizes.values()))
            + joint_table_bytes(self.components, measured, setting.schema)
            + BYTES_PER_QUERY * queries_of(measured, setting.schema)
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

    one_way_share: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """Share of the budget for one-way marginals, where larger ones are measured as well."""

    def weights(self, measured: Sequence[Group]) -> list[Fraction]:
        """One-way marginals apart from the others."""
        return one_way_apart(measured, self.one_way_share)


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


class AdaptivePairsSpec(AdaptiveSpec):
    """One-way marginals first, then rounds among pairs."""

    noise_power: ClassVar[float] = 0.5
    """A mixture smooths: what noise leaves of a large table is far less than the noise itself."""

    opening_share: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Share of the budget for measuring all one-way marginals once, before the first round."""

    def default_pace(self, measured: Sequence[Group], setting: Setting) -> tuple[int, int]:
        """As many rounds as there are marginals worth a measurement."""
        return worth_measuring(self.candidates(measured, setting.schema), setting), 1

    def choose_measured(self, setting: Setting) -> list[Group]:
        """Pairs, where a single measurement would take them or more; one-way marginals open.

        Rounds look at every candidate again and again, which takes too long for higher orders, and
        choosing among pairs is as accurate (docs/defaults.md).
        """
        chosen = by_forecast_error(setting, highest=2)
        return [group for group in chosen if len(group.attributes) > 1] or chosen


class AdaptiveMixtureSpec(AdaptivePairsSpec, MixtureSpec):
    """A mixture that is fitted again after every round."""

    def memory_bytes(self, setting: Setting, measured: Sequence[Group]) -> int:
        """Every round measures other marginals: products of their own, and plans that are kept."""
        rounds, per_round = self.pace(measured, setting)
        share = min(1.0, rounds * per_round / len(measured))
        plan = DOUBLE * share * queries_of(measured, setting.schema)
        tables = [table for group in measured for table in group.tables(setting.schema)]
        widest = sum(max(table.values()) for table in tables)
        factors = 2 * SINGLE * self.components * share * widest
        extra = round(min(rounds, KEPT_PLANS) * plan + factors)
        return super().memory_bytes(setting, measured) + extra


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

    @model_validator(mode="after")
    def _knows_the_second_half(self) -> Self:
        if self.average and self.schedule == "annealed":
            raise ValueError(
                "average is over the second half of the rounds, and nobody knows where that begins "
                "while they are annealed; set average to false, or schedule to equal"
            )
        return self


class Gem(GenerativeSpec):
    """A generator network, taught round by round where it is worst."""

    paper: ClassVar[str] = "Liu, Vietri, Wu (2021), section 2.2 and appendix D (GEM)"

    name: Literal["gem"]
    """Always `gem`."""


class GemPlus(AdaptiveMixtureSpec, NetworkSpec):
    """A generator network that spends as AIM does: little at first, more where it stops learning."""

    paper: ClassVar[str] = (
        "GEM+ (2025), arXiv 2511.09672: the network of Liu, Vietri, Wu (2021), with the selection and "
        "the budget of McKenna et al. (2022), AIM"
    )
    measurements_per_column: ClassVar[int] = 8

    name: Literal["gem_plus"]
    """Always `gem_plus`."""
    schedule: Literal["equal", "annealed"] = "annealed"
    """`equal`: every round has the same budget. `annealed`, as in AIM: half the noise, for four times
    the budget, from the round on after one that changed the model no more than noise would have;
    until the budget is used up."""
    score: Literal["largest_error", "total_error"] = "total_error"
    """What a round selects by. `largest_error`: that of a candidate's queries. `total_error`, as in AIM:
    the sum of its absolute errors, less what the noise of measuring it would add up to, times the
    number of its columns in each of the asked marginals."""
    steps: Steps = 600
    """Upper bound on the optimiser's steps in each round."""
    learning_rate: Rate = 0.003
    """Step size of the optimiser (Adam)."""

    def choose_measured(self, setting: Setting) -> list[Group]:
        """Pairs: the rounds find out which of them are worth their noise."""
        return smallest_pairs(setting)

    def default_pace(self, measured: Sequence[Group], setting: Setting) -> tuple[int, int]:
        """As many measurements in a round as there are columns: few fits, and no round for one alone.

        Where rounds are equal, as many in all as other mixtures have.
        """
        rounds, _ = super().default_pace(measured, setting)
        per_round = len(columns_of(measured))
        return round(rounds / per_round), per_round


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
