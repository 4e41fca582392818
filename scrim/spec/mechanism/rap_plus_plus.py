"""`rap_plus_plus`: its parameters."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from scrim.spec.mechanism.mixture import Rate, Steps
from scrim.spec.mechanism.rows import RowsSpec, SearchedRows


class RapPlusPlus(RowsSpec):
    """Rows moved by gradients through soft thresholds that harden step by step."""

    paper: ClassVar[str] = (
        "Vietri et al. (2022); Liu, Tang, Vietri, Wu (2023), appendix B.3, algorithm 3 (RAP++)"
    )

    name: Literal["rap_plus_plus"]
    """Always `rap_plus_plus`."""
    rows: SearchedRows = 1000
    """Number of relaxed rows (the paper's N')."""
    steps: Steps = 100
    """Upper bound on the optimiser's steps at each temperature of a round."""
    learning_rate: Rate = 0.005
    """Step size of the optimiser (Adam)."""
    first_temperature: Annotated[float, Field(gt=0, le=1e6)] = 2.0
    """The first inverse temperature of the sigmoids (sigma_1); it doubles until the last."""
    last_temperature: Annotated[float, Field(gt=0, le=1e6)] = 512.0
    """The last inverse temperature."""
