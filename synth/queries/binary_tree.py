"""Binary trees: intervals of numbers at several levels, each twice as fine, crossed with categories.

Only the finest cells are counted or computed; all others are their sums.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise, product
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from scrim.spec.columns import LabelledColumn
from scrim.spec.errors import SpecError
from scrim.spec.population import Protection
from scrim.spec.schema import Attribute, Schema
from scrim.spec.sensitivity import Sensitivity
from scrim.spec.workload.binary_tree import TreeBlock
from synth.planning.memory import KEPT_PLANS
from synth.queries.block import Counts, QueryBlock
from synth.queries.condition_labels import category_labels
from synth.queries.features import CellFeatures
from synth.queries.marginal import Marginal, joined
from synth.queries.marginal_counter import MarginalCounter
from synth.queries.readable import Cells, Products, SoftRows, WeightedRows
from synth.queries.reading import Reading
from synth.queries.tree_plan import TreePlan


@dataclass(frozen=True)
class TreeQueries(QueryBlock):
    """The cells of the cross tables of some columns, for all combinations of levels of numeric ones."""

    reads: ClassVar[Literal["codes", "numbers"]] = "numbers"

    attributes: tuple[str, ...]
    levels: int
    schema: Schema = field(hash=False, repr=False)

    @classmethod
    def of(cls, block: TreeBlock, schema: Schema) -> "TreeQueries":
        """The tree of a block."""
        return cls(block.attributes, block.levels, schema)

    @property
    def size(self) -> int:
        """Total number of cells of all tables."""
        return self._size

    @property
    def name(self) -> str:
        """The name: columns and levels."""
        return f"tree({joined(self.attributes)}, {self.levels} levels)"

    def sensitivity(self, protection: Protection) -> Sensitivity:
        """The sensitivity: a row is in one cell of every table."""
        return self._block.sensitivity(self.schema, protection)

    def labels(self, schema: Schema) -> Iterator[str]:
        """Such as `sex=F & age in [25, 50) (2 of 4)`; intervals of different levels may be equal."""
        for table in self.tables:
            parts = [_cell_labels(reading, schema) for reading in table]
            yield from (" & ".join(cell) for cell in product(*parts))

    @classmethod
    def counter(cls, blocks: Sequence["TreeQueries"]) -> "TreeCounter":
        """Count the finest cells of all blocks in one pass over the rows."""
        return TreeCounter(blocks)

    @classmethod
    def on_histogram(cls, blocks: Sequence["TreeQueries"], model: Cells) -> list[torch.Tensor]:
        """Sum the weights of bins; columns that the model lacks are uniform."""
        plan = _plan_of(tuple(blocks))
        return plan.all_levels(plan.on_histogram(model))

    @classmethod
    def on_support(
        cls, blocks: Sequence["TreeQueries"], support: WeightedRows
    ) -> list[torch.Tensor]:
        """Add each row's weight to its cells; columns that the rows lack are uniform."""
        plan = _plan_of(tuple(blocks))
        return plan.all_levels(plan.on_support(support))

    def matching(self, index: int, support: WeightedRows) -> torch.Tensor:
        """The rows in one cell."""
        sizes = [[reading.size for reading in table] for table in self.tables]
        ends = np.cumsum([math.prod(axes) for axes in sizes])
        number = int(np.searchsorted(ends, index, side="right"))
        codes = np.unravel_index(index - ends[number] + math.prod(sizes[number]), sizes[number])
        matches = torch.ones(len(support.weights), dtype=torch.bool)
        for reading, code in zip(self.tables[number], codes, strict=True):
            cells = self._cells_of_codes[reading.name][support.codes[reading.column].long()]
            matches &= cells == int(code)
        return matches.nonzero().flatten()

    @classmethod
    def on_product(cls, blocks: Sequence["TreeQueries"], mixture: Products) -> torch.Tensor:
        """Marginals of the finest cells, and their sums."""
        plan = _plan_of(tuple(blocks))
        return plan.fold.all_levels(Marginal.on_product(plan.finest, plan.coarse_mixture(mixture)))

    @classmethod
    def on_relaxed(cls, blocks: Sequence["TreeQueries"], rows: SoftRows) -> torch.Tensor:
        """Answer from each row's product distribution over the soft finest cells of its columns."""
        plan = _plan_of(tuple(blocks))
        return plan.fold.all_levels(Marginal.on_product(plan.finest, rows.mixture(plan.readings)))

    def features(self, schema: Schema) -> CellFeatures:
        """One table for every combination of levels."""
        return CellFeatures(self.tables)

    @cached_property
    def _size(self) -> int:
        return self._block.size(self.schema)

    @property
    def _block(self) -> TreeBlock:
        return TreeBlock(self.attributes, self.levels)

    def require_bins(self) -> None:
        """Refuse models with binned numbers if the bins are not parts of the cells."""
        problem = self._block.unaligned(self.schema)
        if problem is not None:
            raise SpecError(problem)

    @cached_property
    def _cells_of_codes(self) -> dict[str, torch.Tensor]:
        """For each reading, the cell of every code of its column in discrete models."""
        self.require_bins()
        readings = [reading for axis in self._axes for reading in axis]
        return {
            r.name: torch.from_numpy(r.codes_of(self.schema.attribute(r.column))) for r in readings
        }

    @cached_property
    def tables(self) -> list[tuple[Reading, ...]]:
        """The readings of the columns for each table, coarse ones first."""
        return list(product(*self._axes))

    @cached_property
    def finest(self) -> tuple[Reading, ...]:
        """The readings of the columns at the last level."""
        return tuple(axis[-1] for axis in self._axes)

    @cached_property
    def _axes(self) -> list[list[Reading]]:
        return [self._readings_of(self.schema.attribute(name)) for name in self.attributes]

    def _readings_of(self, column: Attribute) -> list[Reading]:
        if isinstance(column, LabelledColumn):
            return [Reading.of(column)]
        return [Reading.at_level(column.line, level) for level in range(1, self.levels + 1)]


class TreeCounter:
    """Counts trees, chunk by chunk."""

    def __init__(self, trees: Sequence[TreeQueries]) -> None:
        self._plan = _plan_of(tuple(trees))
        self._finest = MarginalCounter(self._plan.finest)

    def add(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Count the rows of one chunk."""
        self._finest.add({r.name: r.codes(columns[r.column]) for r in self._plan.readings})

    def totals(self) -> list[Counts]:
        """The counts of each tree."""
        finest = [torch.from_numpy(counts) for counts in self._finest.totals()]
        return [counts.numpy() for counts in self._plan.all_levels(finest)]


@lru_cache(maxsize=KEPT_PLANS)
def _plan_of(trees: tuple[TreeQueries, ...]) -> TreePlan:
    """Return a cached plan, since every step of a fit uses the same one."""
    return TreePlan(trees)


def _cell_labels(reading: Reading, schema: Schema) -> list[str]:
    """The label of each code of a column."""
    column = schema.attribute(reading.column)
    if isinstance(column, LabelledColumn):
        return category_labels(column)
    assert reading.edges is not None
    edges = [column.write(edge) for edge in reading.edges]
    intervals = [f"[{low}, {high})" for low, high in pairwise(edges)]
    intervals[-1] = intervals[-1][:-1] + "]"
    count = len(intervals)
    labels = [
        f"{column.name} in {interval} ({number} of {count})"
        for number, interval in enumerate(intervals, start=1)
    ]
    missing = [f"{column.name} is {kind} (none of {count})" for kind in column.apart]
    return labels + missing
