"""`gaussian`: its parameters."""

from typing import ClassVar, Literal

from scrim.spec.mechanism.base import MechanismSpec


class Gaussian(MechanismSpec):
    """Noisy answers only: every marginal is measured once with discrete Gaussian noise."""

    paper: ClassVar[str] = (
        "Canonne, Kamath, Steinke (2020), The Discrete Gaussian for Differential Privacy"
    )
    releases_rows: ClassVar[bool] = False

    name: Literal["gaussian"]
    """Always `gaussian`."""
    consistent: bool = True
    """Make overlapping marginals consistent by generalised least squares, which also reduces the error.
    Otherwise the answers are the raw measurements."""
