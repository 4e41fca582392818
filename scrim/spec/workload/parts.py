"""Parts of marginals: orthogonal tables whose sums are marginals. No workload item asks for them.

The part of a column set multiplies its marginal along each column by size I - J, where J is all ones. A
marginal is the sum of the parts of all its column sets, each divided by its number of cells and spread
evenly over the other columns (docs/privacy.md, section 3).
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from scrim.spec.errors import SpecError
from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from scrim.spec.sensitivity import Sensitivity, of_part, shifts_of_part
from scrim.spec.workload.block import Block


@dataclass(frozen=True)
class PartBlock(Block):
    """One part: as many values as the marginal of its columns has cells."""

    needs_bins: ClassVar[bool] = True

    def sizes(self, schema: Schema) -> tuple[int, ...]:
        """The number of values of each column."""
        return tuple(schema.sizes[name] for name in self.attributes)

    def size(self, schema: Schema) -> int:
        """Number of cells."""
        return math.prod(self.sizes(schema))

    def sensitivity(self, schema: Schema, protection: Protection) -> Sensitivity:
        """The sensitivity under add/remove; raises SpecError for other relations and linked tables."""
        if schema.is_linked:
            raise SpecError("parts of marginals are measured only in a single table of rows")
        return of_part(self.sizes(schema), protection)

    def shifts(self, schema: Schema) -> dict[int, int]:
        """How far one row moves the values, as absolute values, and how many values move that far."""
        return shifts_of_part(self.sizes(schema))
