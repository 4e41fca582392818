"""Parameters of mechanisms for groups of individuals (Liu, Wu 2022)."""

from typing import Annotated

from pydantic import Field

PAPER = "Liu, Wu (2022), Towards Differentially Private Query Release for Hierarchical Data"

OpeningShareOfLevels = Annotated[
    float,
    Field(
        ge=0,
        lt=1,
        description="Share of the budget for measuring, before the first round, the number of individuals, "
        "the sizes of groups, and every column alone at its own level.",
    ),
]
