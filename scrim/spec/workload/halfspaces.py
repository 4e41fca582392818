"""Random halfspaces: rows on one side of a plane through categories and numbers.

Paper: Liu, Tang, Vietri, Wu (2023), definition 2.4 and section 5.2: theta ~ N(0, 1/d) for every
coordinate of the one-hot encoding, threshold ~ N(0, 1), numbers scaled to [0, 1].
"""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from scrim.spec.base import Seed, Spec
from scrim.spec.errors import SpecError
from scrim.spec.schema import Attribute, CategoricalColumn, Schema
from scrim.spec.workload.block import Block
from scrim.spec.workload.conditions import MAX_PREDICATES, PredicateBlock

MAX_WEIGHTS = 1_000_000_000


def coordinates(column: Attribute) -> int:
    """How many coordinates a row has of a column: one-hot, or a place and whether it is missing."""
    return column.size if isinstance(column, CategoricalColumn) else 2


@dataclass(frozen=True)
class HalfspaceBlock(PredicateBlock):
    """Halfspaces, which are drawn only when they are needed: there may be very many."""

    item: "Halfspaces" = field(compare=False)

    def unaligned(self, schema: Schema) -> str | None:
        """No bin lies on one side of every plane."""
        return "halfspaces are about numbers, not bins; use a mechanism that needs no bins"


class Halfspaces(Spec):
    """Random halfspaces over all columns.

    A category counts as a coordinate that is 1 for its rows, a number as its place between the
    declared bounds, a missing number as a coordinate of its own.
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
