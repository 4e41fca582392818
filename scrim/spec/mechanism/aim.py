"""`aim`: its parameters."""

from typing import ClassVar, Literal

from scrim.spec.mechanism.adaptive import OpeningShare, Schedule, Score
from scrim.spec.mechanism.graphical import GraphicalSpec, MaxCells


class Aim(GraphicalSpec):
    """A graphical model that grows with the budget spent: little at first, more where it stops learning."""

    paper: ClassVar[str] = "McKenna, Mullins, Sheldon, Miklau (2022), AIM, arXiv 2201.12677"

    name: Literal["aim"]
    """Always `aim`."""
    schedule: Schedule = "annealed"
    score: Score = "total_error"
    opening_share: OpeningShare = 0.25
    max_cells: MaxCells = 2**22
    """Most cells that the tables of the model may have together. In each round as large a part of them
    as will then be spent of the budget; a marginal that would need more is no candidate of the round."""
