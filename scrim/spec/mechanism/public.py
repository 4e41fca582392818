"""The parameters that mechanisms share which start from public data."""

from typing import Annotated, ClassVar

from pydantic import Field

from scrim.spec.base import Spec
from scrim.spec.mechanism.base import MechanismSpec


class Screen(Spec):
    """Spend budget on measuring how well the public rows can fit, and stop if they cannot."""

    share: Annotated[float, Field(gt=0, lt=1)] = 0.02
    """Share of the release's budget that pays for it."""
    max_error: Annotated[float, Field(gt=0, le=1)] = 0.05
    """Largest error, as a fraction of the rows, that the best weights on the public rows may leave.
    Above it the release ends there, and what it has not spent is returned."""


class PublicDataSpec(MechanismSpec):
    """What all mechanisms that start from public data share."""

    needs_public_data: ClassVar[bool] = True
    takes_public_data: ClassVar[bool] = True
    needs_public_columns: ClassVar[bool] = True
    """Whether the public data must have every column that is asked about or measured."""

    screen: Screen | None = None
    """Whether to measure first how closely weights on the public rows can answer the workload."""
