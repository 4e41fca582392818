"""What all mechanisms share: how they are described, and the plans by which they spend."""

from dataclasses import dataclass
from typing import Any, ClassVar, get_args

from synth.spec.base import Spec
from synth.spec.errors import SpecError
from synth.spec.workload import Workload

MAX_CELLS = 20_000_000
"""Largest histogram a mechanism keeps in memory (160 MB at eight bytes a cell)."""


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
