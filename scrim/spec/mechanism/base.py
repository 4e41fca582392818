"""What all mechanisms share: how they are described, and the plans by which they spend."""

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, get_args

from scrim.spec.base import Spec
from scrim.spec.errors import SpecError
from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from scrim.spec.workload import Group, Groups, Workload

MAX_CELLS = 20_000_000
"""Largest histogram a mechanism keeps in memory (160 MB at eight bytes a cell)."""


@dataclass(frozen=True)
class OneShot:
    """A plan in which everything is measured once. Amounts are units of 1e-12 rho."""

    measure: tuple[int, ...]
    """Units for measuring each group."""


@dataclass(frozen=True)
class Rounds:
    """A plan of T rounds of k selections and k measurements. Amounts are units of 1e-12 rho."""

    public: tuple[Group, ...]
    """Groups whose counts no unit can move: they are read once, before the first round, for nothing."""
    opened: tuple[Group, ...]
    """Groups about single columns that are measured once, before the first round."""
    opening: int
    """Units for measuring each of them."""
    rounds: int
    per_round: int
    select: int
    """Units for the one-shot selection of all k candidates of a round."""
    measure: int
    """Units for measuring one of them."""

    @property
    def total(self) -> int:
        """Units for everything."""
        return self.opening * len(self.opened) + self.for_rounds

    @property
    def for_rounds(self) -> int:
        """Units for all rounds."""
        return self.rounds * (self.select + self.per_round * self.measure)


@dataclass(frozen=True)
class AnnealedRounds(Rounds):
    """A plan of at most T rounds; `select` and `measure` are those of the first.

    A round that taught no more than noise makes the next ones four times as dear; the last spends what
    is left. All of them together never spend more than is reserved.
    """

    reserved: int
    """Units for all rounds."""

    @property
    def for_rounds(self) -> int:
        """Units for all rounds: at most what is reserved."""
        return self.reserved


@dataclass(frozen=True)
class Draws:
    """A plan of T rounds of draws by the query player of a game. Amounts are units of 1e-12 rho."""

    per_round: int
    """Independent draws of each round."""
    prices: tuple[int, ...]
    """Units of one draw, round by round."""


Plan = OneShot | Rounds | Draws
"""How a mechanism spends its budget."""


@dataclass(frozen=True)
class Setting:
    """What is known before anything is spent: all that a mechanism's own choices may follow from."""

    schema: Schema
    protection: Protection
    units: int
    """The mechanism's budget, in units of 1e-12 rho."""
    rows: int
    """About how many rows there are, as declared."""
    asked: Groups


class NamedSpec(Spec):
    """What a release may name, and what the catalogue shows of it."""

    paper: ClassVar[str]
    query_types: ClassVar[tuple[str, ...]] = ("marginals",)
    releases_rows: ClassVar[bool] = True
    needs_public_data: ClassVar[bool] = False
    takes_public_data: ClassVar[bool] = False
    """Whether a public dataset may be named beside it."""
    two_level: ClassVar[bool] = False
    """Whether it works on groups of individuals, linked, instead of one table of rows."""

    measure: Workload | None = None
    """What is measured with noise; the mechanism's own choice where not given. What is measured and
    what is asked are two things: everything asked is answered from the model fitted to what is measured."""

    @classmethod
    def catalogue_name(cls) -> str:
        """The value of `name` that stands for this mechanism."""
        return str(get_args(cls.model_fields["name"].annotation)[0])


class MechanismSpec(NamedSpec):
    """What all mechanisms share."""

    needs_bins: ClassVar[bool] = True
    """Whether it works on discrete domains alone, where numbers are their bins."""
    needs_histogram: ClassVar[bool] = False

    def choose_measured(self, setting: Setting) -> list[Group]:
        """What to measure for what is asked, where nobody named it."""
        return setting.asked

    @abstractmethod
    def plan(self, measured: Sequence[Group], setting: Setting) -> Plan:
        """Divide the budget over the operations on those groups, rounding down."""

    def cells(self, used: Sequence[str], schema: Schema) -> int:
        """How many weights a histogram over those columns has."""
        return math.prod(schema.sizes[name] for name in used)

    def memory_bytes(self, setting: Setting, measured: Sequence[Group]) -> int | None:
        """About how much memory the fit needs at its peak, beside the program; None if unknown."""
        return None


class OneShotSpec(MechanismSpec):
    """A mechanism that measures everything once, before it fits anything."""

    def plan(self, measured: Sequence[Group], setting: Setting) -> OneShot:
        """Each group's share, by its weight."""
        return divide(setting.units, self.weights(measured))

    def weights(self, measured: Sequence[Group]) -> list[Fraction]:
        """How the budget is shared; equally, unless a mechanism knows better."""
        return [Fraction(1)] * len(measured)


def divide(units: int, weights: Sequence[Fraction]) -> OneShot:
    """A budget in parts of given weights, rounded down."""
    whole = sum(weights)
    shares = tuple(math.floor(weight / whole * units) for weight in weights)
    if min(shares) < 1:
        raise SpecError(f"the budget is too small for {len(weights)} measurements; ask for fewer")
    return OneShot(measure=shares)


def one_way_apart(measured: Sequence[Group], share: float) -> list[Fraction]:
    """One-way groups share a part of their own: they are few, and everything rests on them."""
    is_single = [len(group.attributes) == 1 for group in measured]
    count = Counter(is_single)
    if len(count) == 1:
        return [Fraction(1)] * len(measured)
    weight = {True: Fraction(share) / count[True], False: (1 - Fraction(share)) / count[False]}
    return [weight[single] for single in is_single]
