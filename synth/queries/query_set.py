"""A compiled workload: blocks in order, answered together as one flat vector."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch

from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from scrim.spec.sensitivity import Sensitivity
from scrim.spec.workload import (
    Block,
    ConjunctionBlock,
    GroupSizesBlock,
    HalfspaceBlock,
    HierarchicalBlock,
    MarginalBlock,
    PartBlock,
    TreeBlock,
    WorkloadItem,
    expand,
)
from scrim.spec.workload.grid import GridBlock
from synth.domain import Domain
from synth.queries.binary_tree import TreeQueries
from synth.queries.block import Counts, QueryBlock, Single
from synth.queries.conjunction import ConjunctionQueries
from synth.queries.grid import GridQueries
from synth.queries.halfspace import HalfspaceQueries
from synth.queries.hierarchical import GroupSizeQueries, HierarchicalQueries
from synth.queries.marginal import Marginal
from synth.queries.marginal_part import MarginalPart
from synth.queries.readable import Cells, GroupKinds, Products, SoftRows, WeightedRows
from synth.table import Table


class QuerySet:
    """Blocks of queries in order; all answers are flat vectors in that order."""

    def __init__(self, blocks: Iterable[QueryBlock]) -> None:
        self.blocks = tuple(blocks)

    @cached_property
    def offsets(self) -> Counts:
        """The start of each block in the flat vector, and the length of the vector at the end."""
        return np.cumsum([0, *(block.size for block in self.blocks)], dtype=np.int64)

    @property
    def size(self) -> int:
        """Number of queries."""
        return int(self.offsets[-1])

    @property
    def attributes(self) -> tuple[str, ...]:
        """All attributes that the queries read."""
        return tuple(dict.fromkeys(name for block in self.blocks for name in block.attributes))

    def split(self, flat: Any) -> list[Any]:
        """Split a flat vector into its blocks."""
        return [flat[a:b] for a, b in zip(self.offsets, self.offsets[1:], strict=False)]

    def locate(self, query: int) -> tuple[int, int]:
        """The block of a query, and its position there."""
        block = int(np.searchsorted(self.offsets, query, side="right")) - 1
        return block, query - int(self.offsets[block])

    def candidates(self, among: Literal["marginals", "queries"]) -> Counts:
        """The start of each candidate, a block or a query, in the flat vector."""
        if among == "queries":
            return np.arange(self.size)
        starts = [
            start if block.is_whole else np.arange(start, start + block.size)
            for block, start in zip(self.blocks, self.offsets, strict=False)
        ]
        return np.hstack(starts)

    def candidate(self, index: int, among: Literal["marginals", "queries"]) -> QueryBlock | Single:
        """The candidate at an index: a block or a query."""
        block, position = self.locate(int(self.candidates(among)[index]))
        whole = among == "marginals" and self.blocks[block].is_whole
        return self.blocks[block] if whole else Single(self.blocks[block], position)

    def sensitivities(
        self, among: Literal["marginals", "queries"], protection: Protection
    ) -> list[Sensitivity]:
        """How much a unit can change the counts of each candidate."""
        found: list[Sensitivity] = []
        for block in self.blocks:
            if among == "marginals" and block.is_whole:
                found.append(block.sensitivity(protection))
            else:
                found += [Single(block, 0).sensitivity(protection)] * block.size
        return found

    def count(self, table: Table) -> Counts:
        """True counts over the whole table, chunk by chunk. Only the door may call this."""
        positions = self._positions()
        counters = {cls: cls.counter([self.blocks[i] for i in at]) for cls, at in positions.items()}
        for codes, numbers in table.read(codes=self._read("codes"), numbers=self._read("numbers")):
            for cls, counter in counters.items():
                counter.add(codes if cls.reads == "codes" else numbers)
        return np.concatenate(self._by_class(lambda cls, blocks: counters[cls].totals()))

    def on_histogram(self, model: Cells) -> torch.Tensor:
        """Answers, as fractions, on a distribution over the cells of the domain, in any form."""
        return self._concatenate(lambda cls, blocks: cls.on_histogram(blocks, model))

    def on_support(self, support: WeightedRows) -> torch.Tensor:
        """Answers, as fractions, on weighted rows."""
        return self._concatenate(lambda cls, blocks: cls.on_support(blocks, support))

    def on_group_types(self, types: GroupKinds) -> torch.Tensor:
        """Answers, per group, on one weight for every kind of group."""
        return self._concatenate(lambda cls, blocks: cls.on_group_types(blocks, types))

    def on_product(self, mixture: Products) -> torch.Tensor:
        """Answers, as fractions and differentiably, on a mixture of products."""
        return self._joined(lambda cls, blocks: cls.on_product(blocks, mixture))

    def on_relaxed(self, rows: SoftRows) -> torch.Tensor:
        """Answers, as fractions and differentiably, on relaxed rows."""
        return self._joined(lambda cls, blocks: cls.on_relaxed(blocks, rows))

    def _joined(
        self, answer: Callable[[type[QueryBlock], Sequence[Any]], torch.Tensor]
    ) -> torch.Tensor:
        positions = self._positions()
        if len(positions) == 1:  # the usual case, without splitting and joining a large tensor
            return answer(next(iter(positions)), self.blocks)
        return self._concatenate(
            lambda cls, blocks: list(
                torch.split(answer(cls, blocks), [block.size for block in blocks])
            )
        )

    def _read(self, form: str) -> list[str]:
        """The columns that the queries read in that form."""
        names = (name for g in self.blocks if g.reads == form for name in g.columns_read)
        return list(dict.fromkeys(names))

    def _by_class(
        self, answer: Callable[[type[QueryBlock], Sequence[Any]], list[Any]]
    ) -> list[Any]:
        """Answer all blocks of each query class at once; results are in the order of the blocks."""
        answers: list[Any] = [None] * len(self.blocks)
        for cls, indices in self._positions().items():
            for i, found in zip(
                indices, answer(cls, [self.blocks[i] for i in indices]), strict=True
            ):
                answers[i] = found
        return answers

    def _positions(self) -> dict[type[QueryBlock], list[int]]:
        positions: dict[type[QueryBlock], list[int]] = {}
        for i, block in enumerate(self.blocks):
            positions.setdefault(type(block), []).append(i)
        return positions

    def _concatenate(
        self, answer: Callable[[type[QueryBlock], Sequence[Any]], list[torch.Tensor]]
    ) -> torch.Tensor:
        return torch.cat(self._by_class(answer))


def compile_blocks(blocks: Iterable[Block], schema: Schema) -> QuerySet:
    """Compile blocks of the public contract for data of that schema."""
    return QuerySet(COMPILERS[type(block)](block, schema) for block in blocks)


def compile_workload(items: Sequence[WorkloadItem], schema: Schema) -> QuerySet:
    """Compile the blocks of a workload, each once, in order."""
    return compile_blocks(expand(items, schema), schema)


COMPILERS: dict[type[Block], Callable[[Any, Schema], QueryBlock]] = {
    MarginalBlock: lambda block, schema: Marginal.of(block.attributes, Domain.of(schema)),
    PartBlock: MarginalPart.of,
    TreeBlock: TreeQueries.of,
    ConjunctionBlock: ConjunctionQueries.of,
    HalfspaceBlock: HalfspaceQueries.of,
    GridBlock: GridQueries.of,
    HierarchicalBlock: HierarchicalQueries.of,
    GroupSizesBlock: GroupSizeQueries.of,
}
"""The query class of each type of block."""
