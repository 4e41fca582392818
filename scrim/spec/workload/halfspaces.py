"""Random halfspaces: rows on one side of a hyperplane over categories and numbers.

Paper: Liu, Tang, Vietri, Wu (2023), definition 2.4 and section 5.2: theta ~ N(0, 1/d) for every
coordinate of the one-hot encoding, threshold ~ N(0, 1), numbers scaled to [0, 1].
"""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from scrim.spec.base import Seed, Spec
from scrim.spec.columns import LabelledColumn
from scrim.spec.errors import SpecError
from scrim.spec.schema import Attribute, Schema
from scrim.spec.workload.block import Block
from scrim.spec.workload.conditions import MAX_PREDICATES, PredicateBlock

MAX_WEIGHTS = 1_000_000_000
"""Largest number of weights of all halfspaces of an item: each is drawn and multiplied in every pass."""


def coordinates(column: Attribute) -> int:
    """The number of coordinates of a column: one-hot, or a place and whether it is missing."""
    return column.size if isinstance(column, LabelledColumn) else 2


@dataclass(frozen=True)
class HalfspaceBlock(PredicateBlock):
    """Halfspaces, drawn only when needed, because there may be many."""

    item: "Halfspaces" = field(compare=False)

    def unaligned(self, schema: Schema) -> str | None:
        """Why models of discrete cells cannot answer them: hyperplanes cut through bins."""
        return "halfspaces use numbers, not bins; use a mechanism that needs no bins"


class Halfspaces(Spec):
    """Random halfspaces over all columns.

    Each category is a coordinate that is 1 for its rows. A number is a coordinate from 0 to 1, its place
    between the declared bounds. Missing numbers have their own coordinate.
    """

    type: Literal["halfspaces"]
    """Always `halfspaces`."""
    count: Annotated[int, Field(ge=1, le=MAX_PREDICATES)]
    """Number of queries."""
    seed: Seed
    """Seed of the public random choice."""

    def expand(self, schema: Schema) -> list[Block]:
        """One block of predicates."""
        weights = self.count * sum(coordinates(column) for column in schema.attributes)
        if weights > MAX_WEIGHTS:
            raise SpecError(
                f"these halfspaces have {weights:,} weights, one for each category, more than "
                f"{MAX_WEIGHTS:,}; ask for fewer, or declare fewer categories"
            )
        attributes = tuple(column.name for column in schema.attributes)
        name = f"halfspaces({self.count}, seed {self.seed})"
        return [HalfspaceBlock(attributes, name, self.count, self)]
