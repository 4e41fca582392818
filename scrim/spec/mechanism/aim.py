"""`aim`: its parameters."""

from typing import ClassVar, Literal

from scrim.spec.mechanism.adaptive import OpeningShare, Schedule, Score
from scrim.spec.mechanism.graphical import GraphicalSpec, MaxCells


class Aim(GraphicalSpec):
    """A graphical model fitted in rounds, which get more budget once the model stops improving."""

    paper: ClassVar[str] = "McKenna, Mullins, Sheldon, Miklau (2022), AIM, arXiv 2201.12677"

    name: Literal["aim"]
    """Always `aim`."""
    schedule: Schedule = "annealed"
    score: Score = "total_error"
    opening_share: OpeningShare = 0.25
    max_cells: MaxCells = 2**22
    """Largest total number of cells of the model's tables. Each round may use the same share of them as
    the share of the budget spent before it; a marginal that would need more is not a candidate."""
