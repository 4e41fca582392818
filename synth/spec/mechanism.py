"""Mechanisms and their parameters: one class each, told apart by `name`.

A class also says what the catalogue shows: the paper, the query types it supports and whether it
releases rows. To add a mechanism, write its class here and add it to the union at the end.
"""

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field

from synth.spec.base import Spec, ToldApartBy
from synth.spec.errors import SpecError
from synth.spec.workload import Workload

MAX_CELLS = 20_000_000
"""Largest histogram a mechanism keeps in memory (160 MB at eight bytes a cell)."""
DEFAULT_ROUNDS = 20


@dataclass(frozen=True)
class OneShot:
    """A plan in which everything is measured once. Amounts are units of 1e-12 rho."""

    measure: int
    """Units for measuring one group."""


@dataclass(frozen=True)
class Rounds:
    """A plan of T rounds of k selections and k measurements. Amounts are units of 1e-12 rho."""

    rounds: int
    per_round: int
    select: int
    """Units for the one-shot selection of all k candidates of a round."""
    measure: int
    """Units for measuring one of them."""


class MechanismSpec(Spec):
    """What all mechanisms share."""

    paper: ClassVar[str]
    query_types: ClassVar[tuple[str, ...]] = ("marginals",)
    releases_rows: ClassVar[bool] = True
    needs_histogram: ClassVar[bool] = False
    needs_public_data: ClassVar[bool] = False
    two_level: ClassVar[bool] = False

    measure: Workload | None = None
    """What is measured with noise; the workload itself where not given. What is measured and what
    is asked are two things: everything asked is answered from the model fitted to what is measured."""

    @classmethod
    def catalogue_name(cls) -> str:
        """The value of `name` that stands for this mechanism."""
        return str(get_args(cls.model_fields["name"].annotation)[0])

    def choose_measured(self, asked: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """The marginals to measure for those that are asked, where nobody named others."""
        return asked

    def plan(self, groups: int, units: int) -> Any:
        """Divide a budget over the operations on that many groups, rounding down."""
        raise NotImplementedError


class OneShotSpec(MechanismSpec):
    """A mechanism that measures everything once, before it fits anything."""

    def plan(self, groups: int, units: int) -> OneShot:
        """An equal share for each group."""
        if units < groups:
            raise SpecError(f"the budget is too small for {groups} marginals; ask for fewer")
        return OneShot(measure=units // groups)


class Gaussian(OneShotSpec):
    """Noisy answers only: every marginal is measured once with discrete Gaussian noise."""

    paper: ClassVar[str] = (
        "Canonne, Kamath, Steinke (2020), The Discrete Gaussian for Differential Privacy"
    )
    releases_rows: ClassVar[bool] = False

    name: Literal["gaussian"]
    """Always `gaussian`."""
    consistent: bool = True
    """Make overlapping marginals agree by generalised least squares, which also lowers the error.
    Otherwise the answers are the raw measurements."""


class AdaptiveSpec(MechanismSpec):
    """Parameters of the Adaptive Measurements loop (Liu, Vietri, Wu 2021, algorithm 1)."""

    needs_histogram: ClassVar[bool] = True

    rounds: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Number of rounds of select, measure, update. Where not given: one per marginal, 20 at most."""
    per_round: Annotated[int, Field(ge=1, le=1000)] = 1
    """Number of queries or marginals selected and measured in each round."""
    selection_share: Annotated[float, Field(gt=0, lt=1)] = 0.25
    """The paper's alpha: how the budget of a round is split between selecting and measuring. The
    share of rho that goes to selecting is alpha^2 / (alpha^2 + (1 - alpha)^2)."""
    select: Literal["marginals", "queries"] = "marginals"
    """Whether a round selects and measures whole marginals or, as in the paper, single cells."""

    def plan(self, groups: int, units: int) -> Rounds:
        """Divide over T k selections and measurements, which the paper's theorem 1 forgets to do."""
        rounds = self.rounds or min(groups, DEFAULT_ROUNDS)
        each = units // (rounds * self.per_round)
        weight = self.selection_share**2 / (
            self.selection_share**2 + (1 - self.selection_share) ** 2
        )
        select = math.floor(weight * each)
        if min(select, each - select) < 1:
            raise SpecError(
                f"{rounds} rounds of {self.per_round} leave no budget for each; ask for fewer rounds"
            )
        return Rounds(
            rounds=rounds,
            per_round=self.per_round,
            select=select * self.per_round,
            measure=each - select,
        )


class Mwem(AdaptiveSpec):
    """Multiplicative weights over the whole domain."""

    paper: ClassVar[str] = "Hardt, Ligett, McSherry (2012); Liu, Vietri, Wu (2021), appendix B"

    name: Literal["mwem"]
    """Always `mwem`."""
    past_measurements: bool = True
    """Update with all measurements so far in every round, not with the newest alone."""
    passes: Annotated[int, Field(ge=1, le=10_000)] = 40
    """How often a round goes over its measurements."""
    output: Literal["last", "average"] = "last"
    """Release the last distribution, or the average over all rounds."""


class Pep(AdaptiveSpec):
    """Private entropy projection: the distribution of largest entropy that fits all measurements."""

    paper: ClassVar[str] = "Liu, Vietri, Wu (2021), section 2.1 and appendix C"

    name: Literal["pep"]
    """Always `pep`."""
    passes: Annotated[int, Field(ge=1, le=10_000)] = 25
    """Upper bound on the sweeps over the measurements in one round (the paper's T_max)."""
    tolerance: Annotated[float, Field(ge=0, le=100)] = 2.0
    """The paper's gamma, as a multiple of each measurement's noise scale: answers this close to the
    measurement are left alone."""


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


Mechanism = Annotated[Gaussian | Mwem | Pep | RelaxedProjection, ToldApartBy("name")]
"""A mechanism with its parameters."""

MECHANISMS: tuple[type[MechanismSpec], ...] = (Gaussian, Mwem, Pep, RelaxedProjection)
"""Every mechanism, in the order of the catalogue."""
