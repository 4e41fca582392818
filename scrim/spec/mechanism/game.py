"""Mechanisms that play the release game: a query player who points out errors against a data player."""

import math
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from scrim.spec.budget import rho_of_units
from scrim.spec.errors import SpecError
from scrim.spec.mechanism.base import Draws, MechanismSpec, Plan, Setting
from scrim.spec.mechanism.product import AdaptiveMixtureSpec, Steps
from scrim.spec.memory import DOUBLE, SINGLE, joint_table_bytes, queries_of
from scrim.spec.workload import Group

MAX_ROUNDS = 10_000
MOST_ROUNDS = 1000
"""How many rounds a mechanism takes of itself, however large the budget."""
FEM_ROUNDS, FEM_ROUNDS_PER_SIGNAL = 100, 2.4
"""At most so many rounds of fem, and so many for the square root of n sqrt(rho) (docs/defaults.md)."""
KEPT_COMPONENTS = 4000
"""How many product distributions of all generators together are released."""
REGRET_COPIES = 24
"""Counts, sums of answers, regrets of both signs, and up to two copies of each, with what they are
made from."""

GameRounds = Annotated[int, Field(ge=1, le=MAX_ROUNDS)] | None
LearningRate = Annotated[float, Field(gt=0, le=10)]
Drawn = Annotated[int, Field(ge=1, le=10_000)]


class BestResponseSpec(MechanismSpec):
    """A game whose data player answers with the best record."""

    query_types: ClassVar[tuple[str, ...]] = ("marginals", "ranges", "binary_tree", "prefixes")

    effort: Annotated[float, Field(gt=0, le=1000)] = 1.0
    """Most work spent on finding one record, in the solver's own units (about a second each). They are
    the same on every run, which seconds are not."""

    def memory_bytes(self, setting: Setting, measured: Sequence[Group]) -> int:
        """What the query player compares, for every query; the records are few."""
        return regret_bytes(measured, setting)


class DualQuery(BestResponseSpec):
    """Records that answer, one by one, to queries drawn where the records before them are wrong."""

    paper: ClassVar[str] = "Gaboardi et al. (2014), Dual Query; Liu, Vietri, Wu (2021), appendix B"

    name: Literal["dual_query"]
    """Always `dual_query`."""
    rounds: GameRounds = None
    """Number of rounds, and of records. Where not given: as many as the budget buys at `rate`."""
    samples: Drawn = 10
    """Queries drawn in each round (the paper's s)."""
    rate: LearningRate = 2.0
    """The query player's learning rate (the paper's eta) for which the number of rounds is chosen. The
    rate in use is what the budget buys: this one, where there are as many rows as expected."""

    def plan(self, measured: Sequence[Group], setting: Setting) -> Draws:
        """A draw after t rounds costs t^2 times one after the first."""
        rounds = self.rounds or rounds_at(self.rate, self.samples, setting)
        return growing_draws(rounds, self.samples, setting.units)


class Fem(BestResponseSpec):
    """Records that answer, with perturbations, to all queries selected so far."""

    paper: ClassVar[str] = (
        "Vietri et al. (2020), New Oracle-Efficient Algorithms; Liu, Vietri, Wu (2021), appendix B"
    )

    name: Literal["fem"]
    """Always `fem`."""
    rounds: GameRounds = None
    """Number of rounds. Where not given: the more, the larger the budget, up to 100."""
    per_round: Drawn = 1
    """Queries selected in each round."""
    samples: Annotated[int, Field(ge=1, le=1000)] = 10
    """Records found in each round, each with a perturbation of its own (the paper's s)."""
    perturbation: Annotated[float, Field(gt=0, le=1e4)] = 1.0
    """Mean of the exponential noise on each code, in units of one selected query. It belongs to the
    search for records and has nothing to do with privacy."""

    def plan(self, measured: Sequence[Group], setting: Setting) -> Draws:
        """Every selection gets an equal part."""
        signal = setting.rows * math.sqrt(rho_of_units(setting.units))
        wanted = round(FEM_ROUNDS_PER_SIGNAL * math.sqrt(signal))
        return even_draws(
            self.rounds or min(max(1, wanted), FEM_ROUNDS), self.per_round, setting.units
        )


class QueryGan(AdaptiveMixtureSpec):
    """Generators that learn from critics alone, and whose mixture is released."""

    paper: ClassVar[str] = (
        "a thesis on QueryGAN, algorithm 3; critics drawn as in Gaboardi et al. (2014), since the "
        "thesis's own oracle is not private"
    )

    name: Literal["query_gan"]
    """Always `query_gan`."""
    critic: Literal["drawn", "measured"] = "drawn"
    """`drawn`: queries and negations, drawn where the mixture of all generators so far is wrong.
    `measured`: what it answers worst is selected and measured, as adaptive mechanisms do."""
    per_round: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Critics of each round. Where not given: five if they are drawn, one if they are measured."""
    rate: LearningRate = 2.0
    """The critics' learning rate (eta) for which the number of rounds is chosen, if they are drawn."""
    opening_share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the budget for measuring all one-way marginals once, before measured critics."""
    components: Annotated[int, Field(ge=1, le=100_000)] = 200
    """Number of product distributions in each generator."""
    steps: Steps = 10
    """Steps of gradient descent in each round. Against measured critics every step is a turn."""
    learning_rate: Annotated[float, Field(gt=0, le=10_000)] = 20.0
    """Step size, for the logits of each component."""

    @model_validator(mode="after")
    def _fits_the_critic(self) -> Self:
        unused = ("rate",) if self.critic == "measured" else ("selection_share", "opening_share")
        for name in unused:
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(
                    f"{name} is of no use where critic is {self.critic!r}; leave it out"
                )
        return self

    def plan(self, measured: Sequence[Group], setting: Setting) -> Plan:
        """Draws that cost ever more, or rounds of selecting and measuring."""
        if self.critic == "measured":
            return super().plan(measured, setting)
        per_round = self.per_round or 5
        rounds = self.rounds or rounds_at(self.rate, per_round, setting)
        return growing_draws(rounds, per_round, setting.units)

    def memory_bytes(self, setting: Setting, measured: Sequence[Group]) -> int:
        """One generator, what is kept of all of them, and what the critics compare."""
        codes = sum(setting.schema.sizes.values())
        return (
            self.generator_bytes(codes)
            + 2 * SINGLE * KEPT_COMPONENTS * codes
            + joint_table_bytes(self.components, measured, setting.schema)
            + regret_bytes(measured, setting)
        )


def rounds_at(rate: float, per_round: int, setting: Setting) -> int:
    """The most rounds for which the budget buys that learning rate, if as many rows as expected exist.

    docs/privacy.md, section 4: rho = s eta^2 c^2 T(T-1)(2T-1) / (12 n^2).
    """
    bought = rho_of_units(setting.units) * (setting.rows / (rate * setting.protection.rows)) ** 2
    low, high = 2, MOST_ROUNDS
    while low < high:
        middle = (low + high + 1) // 2
        if per_round * squares_below(middle) <= 2 * bought:
            low = middle
        else:
            high = middle - 1
    return low


def squares_below(rounds: int) -> int:
    """0^2 + 1^2 + ... + (T-1)^2: how many first draws the draws of T rounds cost."""
    return rounds * (rounds - 1) * (2 * rounds - 1) // 6


def growing_draws(rounds: int, per_round: int, units: int) -> Draws:
    """A plan for hedge draws: the regret after t rounds has the same rows t times."""
    first = units // (per_round * max(1, squares_below(rounds)))
    _refuse_if_nothing_is_left(first, rounds, per_round)
    return Draws(per_round, tuple(past**2 * first for past in range(rounds)))


def even_draws(rounds: int, per_round: int, units: int) -> Draws:
    """A plan for draws that look at the newest error alone."""
    each = units // (rounds * per_round)
    _refuse_if_nothing_is_left(each, rounds, per_round)
    return Draws(per_round, (each,) * rounds)


def _refuse_if_nothing_is_left(units: int, rounds: int, per_round: int) -> None:
    if units < 1:
        raise SpecError(
            f"the budget is too small for {rounds} rounds of {per_round} draws; ask for fewer"
        )


def regret_bytes(measured: Sequence[Group], setting: Setting) -> int:
    """What a query player holds for every query."""
    return DOUBLE * REGRET_COPIES * queries_of(measured, setting.schema)
