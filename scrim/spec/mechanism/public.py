"""Parameters of mechanisms that use public data."""

from typing import Annotated, ClassVar

from pydantic import Field

from scrim.spec.base import Spec
from scrim.spec.mechanism.base import MechanismSpec


class Screen(Spec):
    """Spend budget to measure how well the public rows can fit, and stop if they cannot."""

    share: Annotated[float, Field(gt=0, lt=1)] = 0.02
    """Share of the release's budget to spend on it."""
    max_error: Annotated[float, Field(gt=0, le=1)] = 0.05
    """Largest allowed error of the best weights on the public rows, as a fraction of the rows. Above it
    the release stops, and the unspent budget is returned."""


class PublicDataSpec(MechanismSpec):
    """Parameters of mechanisms that use public data."""

    needs_public_data: ClassVar[bool] = True
    takes_public_data: ClassVar[bool] = True
    needs_public_columns: ClassVar[bool] = True
    """Whether the public data must have every column in the workload and the measured queries."""

    screen: Screen | None = None
    """If given, first measure how closely weights on the public rows can answer the workload."""
