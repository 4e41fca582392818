"""Parameters of mechanisms that fit an exact graphical model."""

from typing import Annotated

from pydantic import Field

from scrim.spec.mechanism.adaptive import AdaptiveSpec, OpeningShare
from scrim.spec.mechanism.mixture import Steps

MaxCells = Annotated[int, Field(ge=1, le=2**27)]


class GraphicalSpec(AdaptiveSpec):
    """The graphical model of largest entropy, fitted again after every round."""

    opening_share: OpeningShare = 0.1
    max_cells: MaxCells = 2**22
    """Largest total number of cells of the model's tables. A marginal that would need more is not a
    candidate."""
    steps: Steps = 200
    """Upper bound on the optimiser's steps in each round; the fit after the last round may take five
    times as many."""
