"""Marginals: cross tables of columns that have discrete cells."""

import math
import random
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from scrim.spec.base import Name, Seed, Spec
from scrim.spec.errors import SpecError
from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from scrim.spec.sensitivity import Sensitivity, of_partition
from scrim.spec.workload.block import Block

MAX_ORDER = 10
"""Largest number of columns of a marginal."""
MAX_BLOCKS = 20_000
"""Largest number of blocks of queries in a workload."""
MAX_TABLE_CELLS = 20_000_000
"""Largest cross table that is answered (160 MB at eight bytes a cell)."""

ColumnSets = Annotated[
    list[Annotated[list[Name], Field(min_length=1, max_length=MAX_ORDER)]],
    Field(min_length=1, max_length=MAX_BLOCKS, fail_fast=True),
]
"""Several sets of named columns."""


@dataclass(frozen=True)
class MarginalBlock(Block):
    """Every cell of the cross table of some columns."""

    needs_bins: ClassVar[bool] = True

    def size(self, schema: Schema) -> int:
        """Number of cells."""
        return math.prod(map(schema.sizes.__getitem__, self.attributes))

    def sensitivity(self, schema: Schema, protection: Protection) -> Sensitivity:
        """The sensitivity: a row is in one cell."""
        return of_partition(self.size(schema), protection)

    def tables(self, schema: Schema) -> list[Mapping[str, int]]:
        """The marginal itself."""
        return [{name: schema.sizes[name] for name in self.attributes}]

    def table_count(self, schema: Schema) -> int:
        """One."""
        return 1


def is_too_large(block: Block, schema: Schema) -> bool:
    """Whether a block is longer than any mechanism can answer."""
    return block.size(schema) > MAX_TABLE_CELLS


class Marginals(Spec):
    """Whole marginals: every cell of the cross table of k columns.

    All k-way marginals (`k`), a public random choice of them (`k`, `count`, `seed`), or named ones
    (`attributes`). Numeric columns are included if they have bins. Marginals with more than 20,000,000 cells
    are left out, and refused if they are named.
    """

    type: Literal["marginals"]
    """Always `marginals`."""
    k: Annotated[int, Field(ge=1, le=MAX_ORDER)] | None = None
    """Number of columns in each marginal."""
    count: Annotated[int, Field(ge=1, le=MAX_BLOCKS)] | None = None
    """Number of marginals to choose at random among all of order `k`."""
    seed: Seed | None = None
    """Seed of that public random choice."""
    attributes: ColumnSets | None = None
    """The columns of each marginal, by name."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if (self.k is None) == (self.attributes is None):
            raise ValueError("give either k or attributes")
        if (self.count is None) != (self.seed is None):
            raise ValueError("give count and seed together")
        if self.count is not None and self.k is None:
            raise ValueError("count requires k")
        return self

    def expand(self, schema: Schema) -> list[Block]:
        """Each marginal once, its columns in the schema's order, without those that are too large."""
        large = set(self.left_out(schema))
        return [MarginalBlock(names) for names in self._choose(schema) if names not in large]

    def left_out(self, schema: Schema) -> list[tuple[str, ...]]:
        """The marginals that are left out because they are too large.

        One of them stays if nothing else would be left, and so do named ones: plans refuse it by its name.
        """
        if self.k is None or math.prod(sorted(schema.sizes.values())[-self.k :]) <= MAX_TABLE_CELLS:
            return []
        chosen = self._choose(schema)
        large = [names for names in chosen if is_too_large(MarginalBlock(names), schema)]
        return large if len(large) < len(chosen) else large[1:]

    def _choose(self, schema: Schema) -> list[tuple[str, ...]]:
        if self.attributes is not None:
            return in_schema_order(self.attributes, [column.name for column in schema.attributes])
        names = list(schema.sizes)
        assert self.k is not None
        if self.k > len(names):
            raise SpecError(
                f"{self.k}-way marginals need {self.k} columns; the schema has {len(names)} that are "
                "categorical or have bins"
            )
        available = math.comb(len(names), self.k)
        if self.count is None:
            if available > MAX_BLOCKS:
                raise SpecError(
                    f"{len(names)} columns have {available} {self.k}-way marginals, more than "
                    f"{MAX_BLOCKS}; give count and seed, or attributes"
                )
            return list(combinations(names, self.k))
        if self.count > available:
            raise SpecError(f"count is {self.count}, but there are only {available} such marginals")
        assert self.seed is not None
        return choose_combinations([(names, self.k)], self.count, self.seed)


def in_schema_order(wanted: list[list[str]], names: list[str]) -> list[tuple[str, ...]]:
    """Sets of columns, each once, with columns in the schema's order."""
    position = {name: index for index, name in enumerate(names)}
    marginals: dict[tuple[str, ...], None] = {}
    for attributes in wanted:
        unknown = [name for name in attributes if name not in position]
        if unknown:
            raise SpecError(
                f"the schema has no column {unknown[0]!r} to query; it has {', '.join(names)}"
            )
        if len(set(attributes)) < len(attributes):
            raise SpecError(f"the same column is named twice: {', '.join(attributes)}")
        marginals[tuple(sorted(attributes, key=position.__getitem__))] = None
    return list(marginals)


def choose_combinations(
    parts: list[tuple[list[str], int]], count: int, seed: int
) -> list[tuple[str, ...]]:
    """Draw `count` distinct sets with a given number of names from each part, from a public seed."""
    ways = [math.comb(len(names), k) for names, k in parts]
    chosen: list[tuple[str, ...]] = []
    for rank in _distinct_ranks(count, math.prod(ways), seed):
        found: tuple[str, ...] = ()
        for (names, k), number in zip(reversed(parts), reversed(ways), strict=True):
            rank, part = divmod(rank, number)
            found = (*_combination(names, k, part), *found)
        chosen.append(found)
    return chosen


def _distinct_ranks(count: int, available: int, seed: int) -> list[int]:
    """Draw distinct numbers below `available`, which may exceed 64 bits (R. Floyd's algorithm)."""
    rng = random.Random(seed)
    chosen: set[int] = set()
    for largest in range(available - count, available):
        rank = rng.randrange(largest + 1)
        chosen.add(largest if rank in chosen else rank)
    return sorted(chosen)


def _combination(names: list[str], k: int, rank: int) -> tuple[str, ...]:
    """The k-combination of that rank in the combinatorial number system, without listing the others."""
    chosen: list[str] = []
    for size in range(k, 0, -1):
        below = _ranks_below(len(names), size)
        position = bisect_right(below, rank) - 1
        rank -= below[position]
        chosen.append(names[position])
    return tuple(reversed(chosen))


@cache
def _ranks_below(names: int, size: int) -> tuple[int, ...]:
    """The number of combinations with only names before each position."""
    return tuple(math.comb(position, size) for position in range(names))
