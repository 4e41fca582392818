"""All blocks of a workload, within limits that keep planning fast."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations

from scrim.spec.errors import SpecError
from scrim.spec.schema import Schema
from scrim.spec.workload.block import Block
from scrim.spec.workload.marginals import MAX_BLOCKS, MarginalBlock

MAX_COMBINATIONS = 100_000
"""Largest number of pairs of columns in the tables of a workload, counted table by table; also the largest
number of sets of one higher order that a mechanism considers."""
MAX_TABLES = 100_000
"""Largest total number of cross tables of all blocks."""


class Blocks(list[Block]):
    """The blocks of a workload. Values that depend only on them are computed once for all mechanisms."""

    def __init__(
        self,
        items: Iterable[list[Block]],
        schema: Schema,
        *,
        left_out: Iterable[tuple[str, ...]] = (),
    ) -> None:
        """List the blocks of all items, each block once; `left_out` are marginals that are too large."""
        self.items = list(items)
        self.left_out = list(dict.fromkeys(left_out))
        super().__init__(dict.fromkeys(chain.from_iterable(self.items)))
        self._schema = schema
        self._below: dict[int, Below] = {}

    @cached_property
    def marginals(self) -> list[MarginalBlock]:
        """The blocks that are marginals."""
        return [block for block in self if isinstance(block, MarginalBlock)]

    @cached_property
    def others(self) -> list[Block]:
        """The blocks that are not marginals."""
        return [block for block in self if not isinstance(block, MarginalBlock)]

    @cached_property
    def unbinned(self) -> str | None:
        """A message about a column without the bins that a query needs, or None."""
        for block in self:
            for name in block.attributes:
                if block.needs_bins and name not in self._schema.sizes:
                    return f"column {name!r} needs bins: marginals are tables of discrete cells"
        return None

    @cached_property
    def unaligned(self) -> str | None:
        """Why models of discrete cells cannot answer some query; None if they can."""
        parts = dict.fromkeys(part for block in self for part in block.aligned_parts())
        problems = (part.unaligned(self._schema) for part in parts)
        return next((problem for problem in problems if problem is not None), None)

    def below(self, order: int) -> "Below":
        """All marginals of order one and of the given order that some marginal contains.

        Empty if there are too many to list.
        """
        if order not in self._below:
            listed = sum(times * math.comb(k, order) for k, times in self._orders.items())
            names = self._list_below(order) if listed <= MAX_COMBINATIONS else []
            self._below[order] = Below(names, self._schema)
        return self._below[order]

    @cached_property
    def _orders(self) -> Counter[int]:
        """The number of marginals of each order."""
        return Counter(len(block.attributes) for block in self.marginals)

    def _list_below(self, order: int) -> list[tuple[str, ...]]:
        asked = [block.attributes for block in self.marginals]
        singles = ((name,) for name in dict.fromkeys(chain.from_iterable(asked)))
        several = (combinations(names, min(order, len(names))) for names in asked)
        return list(dict.fromkeys(chain(singles, chain.from_iterable(several))))


@dataclass(frozen=True)
class Below:
    """Marginals contained in a workload's marginals, as column names: most are only counted, not measured."""

    names: list[tuple[str, ...]]
    schema: Schema

    @cached_property
    def blocks(self) -> list[MarginalBlock]:
        """The marginals."""
        return [MarginalBlock(names) for names in self.names]

    @cached_property
    def sizes(self) -> list[int]:
        """The number of cells of each marginal."""
        size_of = self.schema.sizes.__getitem__
        return [math.prod(map(size_of, names)) for names in self.names]

    @cached_property
    def queries(self) -> int:
        """The total number of cells."""
        return sum(self.sizes)


def refuse_many_blocks(count: int) -> None:
    """Refuse a workload of too many blocks."""
    if count > MAX_BLOCKS:
        raise SpecError(
            f"the workload has more than {MAX_BLOCKS:,} marginals, trees and other blocks of queries; ask "
            "for fewer, for example with count and seed"
        )


def refuse_many_tables(blocks: Blocks, schema: Schema) -> None:
    """Refuse a workload whose tables have too many columns, or levels, to be planned."""
    pairs = sum(math.comb(len(block.attributes), 2) for block in blocks if block.is_whole)
    if pairs > MAX_COMBINATIONS:
        raise SpecError(
            f"the tables of the workload contain {pairs:,} pairs of columns, more than "
            f"{MAX_COMBINATIONS:,}; ask for fewer tables, or for tables of fewer columns"
        )
    tables = sum(block.table_count(schema) for block in blocks)
    if tables > MAX_TABLES:
        raise SpecError(
            f"the binary trees of the workload consist of {tables:,} cross tables, one for each "
            f"combination of levels, more than {MAX_TABLES:,}; ask for fewer trees, columns or levels"
        )
