"""What all mechanisms share: how they are described, and the plans by which they spend."""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, get_args

from synth.spec.base import Spec
from synth.spec.errors import SpecError
from synth.spec.workload import Workload

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

    opening: int
    """Units for measuring each one-way marginal once, before the first round; 0 for none."""
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
    """What is measured with noise; the mechanism's own choice where not given. What is measured and
    what is asked are two things: everything asked is answered from the model fitted to what is measured."""

    @classmethod
    def catalogue_name(cls) -> str:
        """The value of `name` that stands for this mechanism."""
        return str(get_args(cls.model_fields["name"].annotation)[0])

    def choose_measured(self, asked: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """The marginals to measure for those that are asked, where nobody named others."""
        return asked

    @abstractmethod
    def plan(self, measured: Sequence[tuple[str, ...]], units: int) -> Any:
        """Divide a budget over the operations on those marginals, rounding down."""

    def memory_bytes(
        self,
        sizes: Mapping[str, int],
        measured: Sequence[tuple[str, ...]],
        asked: Sequence[tuple[str, ...]],
    ) -> int | None:
        """About how much memory the fit needs at its peak, beside the program; None if unknown.

        `sizes` has every attribute of the schema, asked about or not.
        """
        return None


class OneShotSpec(MechanismSpec):
    """A mechanism that measures everything once, before it fits anything."""

    def plan(self, measured: Sequence[tuple[str, ...]], units: int) -> OneShot:
        """Each marginal's share, by its weight."""
        weights = self.weights(measured)
        whole = sum(weights)
        shares = tuple(math.floor(weight / whole * units) for weight in weights)
        if min(shares) < 1:
            raise SpecError(f"the budget is too small for {len(measured)} marginals; ask for fewer")
        return OneShot(measure=shares)

    def weights(self, measured: Sequence[tuple[str, ...]]) -> list[Fraction]:
        """How the budget is shared; equally, unless a mechanism knows better."""
        return [Fraction(1)] * len(measured)
