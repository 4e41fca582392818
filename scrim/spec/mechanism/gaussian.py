"""`gaussian`: its parameters."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from scrim.spec.mechanism.base import ROW_TYPES, TWO_LEVEL_TYPES, MechanismSpec

Weight = Annotated[float, Field(gt=0, le=1e6)]


class Gaussian(MechanismSpec):
    """Noisy answers only: queries measured once, with shares of the budget that minimise the error."""

    paper: ClassVar[str] = (
        "Canonne, Kamath, Steinke (2020), The Discrete Gaussian for Differential Privacy; "
        "Xiao, He, Zhang, Kifer (2023), ResidualPlanner, arXiv 2305.08175"
    )
    releases_rows: ClassVar[bool] = False
    needs_bins: ClassVar[bool] = False
    two_level: ClassVar[bool] = True
    query_types: ClassVar[tuple[str, ...]] = (*ROW_TYPES, *TWO_LEVEL_TYPES)

    name: Literal["gaussian"]
    """Always `gaussian`."""
    consistent: bool = True
    """Make overlapping marginals consistent by generalised least squares, which also reduces the error.
    Otherwise the answers are the raw measurements."""
    objective: Literal["mean", "max"] = "mean"
    """What the division of the budget minimises: the mean squared error over all answers, or the largest
    standard error of an answer."""
    weights: Annotated[list[Weight], Field(min_length=1, max_length=100)] | None = None
    """One weight for each item of the workload: how much the squared errors of its answers count. The
    default is 1 for each. A marginal of several items has the largest of their weights."""
