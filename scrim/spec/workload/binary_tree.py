"""Binary trees: intervals of numbers at several levels, each twice as fine, crossed with categories.

Paper: Liu, Tang, Vietri, Wu (2023), section 5.2. Intervals are half-open; the last one is closed (closed
ones, as in the paper, would double the sensitivity). Every level is a partition, with a cell for missing
values if the column is nullable.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from scrim.spec.base import Spec
from scrim.spec.columns import Bins, IntegerColumn, LabelledColumn, RealColumn
from scrim.spec.errors import SpecError
from scrim.spec.population import Protection
from scrim.spec.schema import Attribute, Schema
from scrim.spec.sensitivity import Sensitivity, of_partition
from scrim.spec.workload.bins import has_known_edges
from scrim.spec.workload.block import Block
from scrim.spec.workload.marginals import MAX_BLOCKS, MAX_ORDER, ColumnSets, in_schema_order

MAX_TREE_LEVELS = 16
"""Largest number of levels of a tree: 65,536 finest intervals."""
CELLS_OF_A_TABLE = 2
"""Smallest number of cells: every table has a numeric column with at least two intervals."""


@dataclass(frozen=True)
class TreeBlock(Block):
    """The cross tables of some columns, for every combination of levels of the numeric ones."""

    levels: int

    def size(self, schema: Schema) -> int:
        """Total number of cells of all tables, without listing the tables: there may be too many."""
        axes = [self._axis(schema.attribute(name)) for name in self.attributes]
        return math.prod(sum(size for _, size in axis) for axis in axes)

    def sensitivity(self, schema: Schema, protection: Protection) -> Sensitivity:
        """A row is in one cell of every table: L^r of them for r numeric columns."""
        return of_partition(CELLS_OF_A_TABLE, protection).stacked(self.table_count(schema))

    def table_count(self, schema: Schema) -> int:
        """L^r tables for r numeric columns."""
        columns = [schema.attribute(name) for name in self.attributes]
        numeric = sum(not isinstance(column, LabelledColumn) for column in columns)
        return int(self.levels**numeric)

    def tables(self, schema: Schema) -> list[Mapping[str, int]]:
        """One for every combination of levels, coarse ones first."""
        axes = [self._axis(schema.attribute(name)) for name in self.attributes]
        return [dict(table) for table in product(*axes)]

    def aligned_parts(self) -> Iterable[Block]:
        """Each column alone: its intervals do not depend on other columns."""
        return [TreeBlock((name,), self.levels) for name in self.attributes]

    def unaligned(self, schema: Schema) -> str | None:
        """Why models of discrete cells cannot answer it: a column's bins do not match the intervals."""
        for name in self.attributes:
            column = schema.attribute(name)
            if not isinstance(column, LabelledColumn) and not self._is_refined_by_bins(column.line):
                return (
                    f"column {name!r} has no bins that are parts of the {2**self.levels} intervals of "
                    f"a binary tree of {self.levels} levels; declare {self._suitable_bins(column.line)}"
                )
        return None

    def _is_refined_by_bins(self, column: IntegerColumn | RealColumn) -> bool:
        if not has_known_edges(column) or column.size - len(column.kinds) < self._intervals(column):
            return False
        # The last bin and the last interval end at the same upper bound.
        starts = at_level(column, self.levels).edges[:-1]
        return set(column.edges[:-1]).issuperset(starts)

    def _suitable_bins(self, column: IntegerColumn | RealColumn) -> str:
        if self._intervals(column) < 2**self.levels:
            return "bins of width 1"
        return f"bins with count {2**self.levels}, or a multiple of it"

    def _intervals(self, column: IntegerColumn | RealColumn) -> int:
        """The number of finest intervals that contain a number."""
        intervals: int = 2**self.levels
        if isinstance(column, IntegerColumn):
            return min(intervals, column.upper - column.lower + 1)
        return intervals

    def _axis(self, column: Attribute) -> list[tuple[str, int]]:
        """The names and sizes of a column's readings."""
        if isinstance(column, LabelledColumn):
            return [(column.name, column.size)]
        return [
            (level_name(column.name, level), 2**level + len(column.apart))
            for level in range(1, self.levels + 1)
        ]


def at_level(column: IntegerColumn | RealColumn, level: int) -> IntegerColumn | RealColumn:
    """The column with 2^level intervals of equal width as its bins. Each level halves the previous one.

    If there are fewer integers than intervals, some intervals are empty.
    """
    return column.model_copy(update={"bins": Bins(count=2**level), "special": []})


def level_name(column: str, level: int) -> str:
    """The name of a numeric column's reading at a level of a tree; no column can have this name."""
    return f"{column}\x1f{2**level}"


class BinaryTree(Spec):
    """Binary trees over numbers: intervals of a half, a quarter, an eighth of the declared range.

    Every combination of one categorical column and k - 1 numeric ones (k numeric ones if the schema has
    no categorical column), or named columns (`attributes`).
    """

    type: Literal["binary_tree"]
    """Always `binary_tree`."""
    k: Annotated[int, Field(ge=1, le=MAX_ORDER)] | None = None
    """Number of columns in each tree; with 1, each numeric column alone."""
    levels: Annotated[int, Field(ge=1, le=MAX_TREE_LEVELS)] = 5
    """Number of times the range is halved; level j has 2^j intervals."""
    attributes: ColumnSets | None = None
    """The columns of each tree, by name; at least one of them numeric."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if (self.k is None) == (self.attributes is None):
            raise ValueError("give either k or attributes")
        return self

    def expand(self, schema: Schema) -> list[Block]:
        """Each tree once, its columns in the schema's order."""
        numeric = {c.name for c in schema.attributes if not isinstance(c, LabelledColumn)}
        if not numeric:
            raise SpecError(
                "binary trees need a numeric column, but the schema has no numeric column"
            )
        names = [column.name for column in schema.attributes]
        trees = in_schema_order(self.attributes or self._combinations(names, numeric), names)
        for tree in trees:
            if not numeric.intersection(tree):
                raise SpecError(
                    f"a binary tree needs a numeric column, but ({', '.join(tree)}) has none; ask "
                    "for a marginal of these columns"
                )
        return [TreeBlock(tree, self.levels) for tree in trees]

    def _combinations(self, names: list[str], numeric: set[str]) -> list[list[str]]:
        assert self.k is not None
        categorical = [name for name in names if name not in numeric]
        numbers = [name for name in names if name in numeric]
        wanted = self.k - 1 if categorical and self.k > 1 else self.k
        if wanted > len(numbers):
            raise SpecError(
                f"binary trees with k {self.k} need {wanted} numeric columns; the schema has "
                f"{len(numbers)}"
            )
        crossed: list[list[str]] = [[name] for name in categorical] if wanted < self.k else [[]]
        trees = len(crossed) * math.comb(len(numbers), wanted)
        if trees > MAX_BLOCKS:
            raise SpecError(
                f"there are {trees} trees, more than {MAX_BLOCKS}; name some of them in attributes"
            )
        return [
            [*category, *some] for category in crossed for some in combinations(numbers, wanted)
        ]
