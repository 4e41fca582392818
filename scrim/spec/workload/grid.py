"""Counts on the public grids of one column, from which its adaptive bins are placed.

No workload item stands for them: a plan adds them for each column whose bins are adaptive.
"""

from dataclasses import dataclass

from scrim.spec.columns import IntegerColumn, RealColumn
from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from scrim.spec.sensitivity import Sensitivity, of_partition
from scrim.spec.workload.block import Block

CELLS_OF_A_LEVEL = 2
"""Smallest number of cells: a grid of one cell has no bins to place."""


@dataclass(frozen=True)
class GridBlock(Block):
    """All cells of every level of a column's grid, with a cell for each kind of missing values in each
    level."""

    def size(self, schema: Schema) -> int:
        """Total number of cells of all levels."""
        column = self.column(schema)
        return sum(len(level) + len(column.kinds) for level in column.grid.starts)

    def sensitivity(self, schema: Schema, protection: Protection) -> Sensitivity:
        """A row is in one cell of every level."""
        levels = len(self.column(schema).grid.starts)
        return of_partition(CELLS_OF_A_LEVEL, protection).stacked(levels)

    def column(self, schema: Schema) -> IntegerColumn | RealColumn:
        """The column that is counted."""
        column = schema.attribute(self.attributes[0])
        assert isinstance(column, IntegerColumn | RealColumn)
        return column
