"""Counts of one column on the levels of its public grid, from which adaptive bins are placed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from scrim.spec.sensitivity import Sensitivity
from scrim.spec.workload.grid import GridBlock
from synth.queries.block import Counts, QueryBlock
from synth.queries.features import CellFeatures
from synth.queries.readable import SoftRows
from synth.queries.reading import Reading


@dataclass(frozen=True)
class GridQueries(QueryBlock):
    """The cells of every level of a grid, coarse levels first; the last cells of a level are for kinds of
    missing values."""

    reads: ClassVar[Literal["codes", "numbers"]] = "numbers"

    attributes: tuple[str, ...]
    schema: Schema = field(hash=False, repr=False)

    @classmethod
    def of(cls, block: GridBlock, schema: Schema) -> "GridQueries":
        """The grid of a block."""
        return cls(block.attributes, schema)

    @property
    def size(self) -> int:
        """Total number of cells of all levels."""
        return sum(reading.size for reading in self.readings)

    @property
    def name(self) -> str:
        """The name: the column and the number of cells of each level."""
        cells = " ".join(str(reading.size) for reading in self.readings)
        return f"grid({self.attributes[0]}, {cells} cells)"

    def sensitivity(self, protection: Protection) -> Sensitivity:
        """The sensitivity: a row is in one cell of every level."""
        return GridBlock(self.attributes).sensitivity(self.schema, protection)

    def labels(self, schema: Schema) -> Iterator[str]:
        """Such as `age in [25, 50) (level 2)`."""
        name = self.attributes[0]
        for level, reading in enumerate(self.readings, start=1):
            assert reading.edges is not None
            for low, high in pairwise(reading.edges):
                yield f"{name} in [{low:.15g}, {high:.15g}) (level {level})"
            for kind in GridBlock(self.attributes).column(schema).kinds:
                yield f"{name} is {kind} (level {level})"

    @classmethod
    def counter(cls, blocks: Sequence["GridQueries"]) -> "GridCounter":
        """Count all blocks in one pass over the rows."""
        return GridCounter(blocks)

    @classmethod
    def on_relaxed(cls, blocks: Sequence["GridQueries"], rows: SoftRows) -> torch.Tensor:
        """Refuse: grids are measured before a model exists, and never asked."""
        raise TypeError(f"{blocks[0].name} is measured, but no model answers it")

    def features(self, schema: Schema) -> CellFeatures:
        """One table for every level."""
        return CellFeatures([(reading,) for reading in self.readings])

    @cached_property
    def readings(self) -> list[Reading]:
        """The column read at each level."""
        column = GridBlock(self.attributes).column(self.schema)
        return [
            Reading(
                f"{column.name}\x1fgrid {number}",
                column.name,
                len(edges) - 1 + len(column.kinds),
                edges,
            )
            for number, edges in enumerate(column.grid.edges)
        ]


class GridCounter:
    """Counts grids, chunk by chunk."""

    def __init__(self, blocks: Sequence[GridQueries]) -> None:
        self._blocks = blocks
        self._counts = [
            [np.zeros(reading.size, np.int64) for reading in block.readings] for block in blocks
        ]

    def add(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Count the rows of one chunk."""
        for block, counts in zip(self._blocks, self._counts, strict=True):
            for reading, total in zip(block.readings, counts, strict=True):
                codes = reading.codes(columns[reading.column])
                total += np.bincount(codes, minlength=reading.size)

    def totals(self) -> list[Counts]:
        """The counts of each grid."""
        return [np.concatenate(counts) for counts in self._counts]
