"""Parameters of mechanisms that play the release game."""

from typing import Annotated, ClassVar

from pydantic import Field

from scrim.spec.mechanism.base import MechanismSpec

GameRounds = Annotated[int, Field(ge=1, le=10_000)] | None
LearningRate = Annotated[float, Field(gt=0, le=10)]
Drawn = Annotated[int, Field(ge=1, le=10_000)]


class BestResponseSpec(MechanismSpec):
    """A game whose data player answers with the best record."""

    query_types: ClassVar[tuple[str, ...]] = ("marginals", "ranges", "binary_tree", "prefixes")

    effort: Annotated[float, Field(gt=0, le=1000)] = 1.0
    """Limit of the work to find one record, in the solver's deterministic units (about a second each).
    Unlike seconds, they give the same result on every run."""
