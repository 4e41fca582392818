"""Answers of models to the finest cells of binary trees, from which all others are summed."""

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import torch

from scrim.spec.schema import Schema
from synth.domain import Domain
from synth.queries.marginal import Marginal
from synth.queries.readable import Cells, Products, WeightedRows
from synth.queries.reading import Reading
from synth.queries.tree_levels import FinestTable, TreeFold


class Tree(Protocol):
    """What a plan reads of a tree's queries."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """The columns of the tree."""

    @property
    def levels(self) -> int:
        """How often the range of a number is halved."""

    @property
    def schema(self) -> Schema:
        """The declared columns."""

    @property
    def size(self) -> int:
        """Total number of cells of all tables."""

    @property
    def finest(self) -> tuple[Reading, ...]:
        """The readings of the columns at the last level."""

    def require_bins(self) -> None:
        """Refuse models with binned numbers if the bins are not parts of the cells."""


class TreePlan:
    """A plan for several trees: the readings of their columns, and how their cells are summed."""

    def __init__(self, trees: Sequence[Tree]) -> None:
        self._trees = trees
        self.readings = list({r.name: r for tree in trees for r in tree.finest}.values())
        self.finest = tuple(
            Marginal(tuple(r.name for r in tree.finest), tuple(r.size for r in tree.finest))
            for tree in trees
        )
        self.fold = TreeFold(
            [
                FinestTable(
                    tree.levels,
                    tuple(reading.size for reading in tree.finest),
                    tuple(reading.edges is not None for reading in tree.finest),
                )
                for tree in trees
            ]
        )

    def all_levels(self, finest: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The cells of all levels of each tree, from the finest cells of each."""
        flat = self.fold.all_levels(torch.cat([cells.flatten() for cells in finest]))
        return list(torch.split(flat, [tree.size for tree in self._trees]))

    def coarse_mixture(self, mixture: Products) -> Products:
        """The mixture over the finest cells instead of bins."""
        domain = Domain(
            tuple(reading.name for reading in self.readings),
            tuple(reading.size for reading in self.readings),
        )
        blocks = [
            self._add_up(mixture.columns([reading.column]), reading, 1) for reading in self.readings
        ]
        return mixture.with_components(domain, torch.cat(blocks, dim=1))

    def on_histogram(self, model: Cells) -> list[torch.Tensor]:
        """The finest cells of each tree: sums over bins, or uniform if the model lacks the column."""
        found = []
        tables = model.marginals([tree.attributes for tree in self._trees])
        for tree, table in zip(self._trees, tables, strict=True):
            known = [r for r in tree.finest if r.column in model.domain.size_of]
            for axis, reading in enumerate(known):
                table = self._add_up(table, reading, axis)
            found.append(self._with_uniform(tree, table, [r.name for r in known]))
        return found

    def on_support(self, support: WeightedRows) -> list[torch.Tensor]:
        """The finest cells of each tree: sums over rows, or uniform if the rows lack the column."""
        known = [r for r in self.readings if r.column in support.domain.size_of]
        coarse = support.recoded(
            Domain(tuple(r.name for r in known), tuple(r.size for r in known)),
            {r.name: self._cell_of[r.name][support.codes[r.column].long()] for r in known},
        )
        found = []
        for tree in self._trees:
            mine = [r.name for r in tree.finest if r.name in coarse.codes]
            # A table has the axis order of all readings, a tree has its own.
            axes = coarse.domain.project(mine).names
            table = coarse.marginal(mine).permute([axes.index(name) for name in mine])
            found.append(self._with_uniform(tree, table, mine))
        return found

    def _with_uniform(self, tree: Tree, table: torch.Tensor, known: Sequence[str]) -> torch.Tensor:
        table = table.reshape([r.size if r.name in known else 1 for r in tree.finest])
        for axis, reading in enumerate(tree.finest):
            if reading.name not in known:
                codes = self._cell_of[reading.name]
                shares = torch.bincount(codes, minlength=reading.size).to(table.dtype) / len(codes)
                table = table * shares.reshape([-1 if i == axis else 1 for i in range(table.dim())])
        return table

    def _add_up(self, table: torch.Tensor, reading: Reading, axis: int) -> torch.Tensor:
        """Sum a table's axis of bins to the cells of a reading."""
        cells = self._cell_of[reading.name].to(table.device)
        if len(cells) == reading.size:
            return table
        shape = [reading.size if i == axis else size for i, size in enumerate(table.shape)]
        return table.new_zeros(shape).index_add(axis, cells, table)

    @cached_property
    def _cell_of(self) -> dict[str, torch.Tensor]:
        """For each reading, the cell of every code of its column in models."""
        found: dict[str, torch.Tensor] = {}
        for tree in self._trees:
            tree.require_bins()
            for reading in tree.finest:
                if reading.name not in found:
                    column = tree.schema.attribute(reading.column)
                    found[reading.name] = torch.from_numpy(reading.codes_of(column))
        return found
