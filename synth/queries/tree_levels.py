"""All levels of binary trees from their finest cells: a cell is the sum of its two halves.

Trees with the same number of levels and of numeric columns are folded together, so that the number of
steps does not depend on the number of trees.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from numpy.typing import NDArray

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class FinestTable:
    """The cross table of a tree with its numeric columns at the last level."""

    levels: int
    sizes: tuple[int, ...]
    """The size of each column; a numeric column has one more cell for each kind of missing values."""
    is_numeric: tuple[bool, ...]

    @property
    def order(self) -> list[int]:
        """The positions of its columns, categories first."""
        return sorted(range(len(self.sizes)), key=lambda axis: self.is_numeric[axis])

    @property
    def numeric_sizes(self) -> list[int]:
        """The sizes of its numeric columns."""
        return [
            size for size, is_numeric in zip(self.sizes, self.is_numeric, strict=True) if is_numeric
        ]

    @property
    def apart(self) -> int:
        """The most cells for missing numbers of a column."""
        finest: int = 2**self.levels
        return max(self.numeric_sizes) - finest

    def padded(self, first: int, nothing: int, apart: int) -> Integers:
        """Positions of its cells: one row per combination of categories, then axes of numbers.

        Every numeric axis has `apart` cells for missing numbers here; unused ones are `nothing`.
        """
        positions = first + np.arange(math.prod(self.sizes)).reshape(self.sizes)
        positions = positions.transpose(self.order).reshape(-1, *self.numeric_sizes)
        whole = (2**self.levels + apart,) * len(self.numeric_sizes)
        padded = np.full((len(positions), *whole), nothing)
        padded[:, *(slice(size) for size in self.numeric_sizes)] = positions
        return padded

    def cells(self, expanded: Integers, apart: int) -> Iterator[Integers]:
        """The positions of each combination of levels among all cells, coarse ones first."""
        categories = [self.sizes[axis] for axis in self.order[: -len(self.numeric_sizes)]]
        back = np.argsort(self.order)
        for levels in product(range(1, self.levels + 1), repeat=len(self.numeric_sizes)):
            slices = [
                _slice_of(level, size - 2**self.levels, apart)
                for level, size in zip(levels, self.numeric_sizes, strict=True)
            ]
            found = expanded[:, *slices]
            yield found.reshape(*categories, *found.shape[1:]).transpose(back).ravel()


class TreeFold:
    """A plan for summing the finest cells of trees, one after another, to the cells of all levels."""

    def __init__(self, trees: Sequence[FinestTable]) -> None:
        sizes = [math.prod(tree.sizes) for tree in trees]
        starts, nothing = np.cumsum([0, *sizes]).tolist(), sum(sizes)
        alike: dict[tuple[int, int], list[int]] = {}
        for number, tree in enumerate(trees):
            alike.setdefault((tree.levels, len(tree.numeric_sizes)), []).append(number)
        self._gathered: list[tuple[int, torch.Tensor]] = []
        cells_of: dict[int, Integers] = {}
        offset = 0
        for (levels, numeric), numbers in alike.items():
            apart = max(trees[number].apart for number in numbers)
            padded = [trees[number].padded(starts[number], nothing, apart) for number in numbers]
            self._gathered.append((levels, torch.from_numpy(np.concatenate(padded))))
            for number, table in zip(numbers, padded, strict=True):
                shape = (len(table), *(_width(levels, apart),) * numeric)
                expanded = offset + np.arange(math.prod(shape)).reshape(shape)
                cells_of[number] = np.concatenate(list(trees[number].cells(expanded, apart)))
                offset += expanded.size
        ordered = [cells_of[number] for number in range(len(trees))]
        self._order = torch.from_numpy(np.concatenate(ordered))

    def all_levels(self, finest: torch.Tensor) -> torch.Tensor:
        """The cells of all levels of each tree, one tree after another."""
        with_nothing = torch.cat([finest, finest.new_zeros(1)])
        parts = []
        for levels, gathered in self._gathered:
            flat = gathered.flatten().to(finest.device)
            cells = with_nothing.index_select(0, flat).reshape(gathered.shape)
            for axis in range(1, cells.dim()):
                cells = _with_coarser_levels(cells.movedim(axis, -1), levels).movedim(-1, axis)
            parts.append(cells.flatten())
        return torch.cat(parts).index_select(0, self._order.to(finest.device))


def _with_coarser_levels(cells: torch.Tensor, levels: int) -> torch.Tensor:
    """The last axis at every level, coarse ones first; each level ends with the missing numbers."""
    numbers, missing = cells[..., : 2**levels], cells[..., 2**levels :]
    parts = [numbers, missing]
    for _ in range(levels - 1):
        numbers = numbers.reshape(*numbers.shape[:-1], -1, 2).sum(-1)
        parts = [numbers, missing, *parts]
    return torch.cat(parts, dim=-1)


def _width(levels: int, apart: int) -> int:
    """The total number of cells of a numeric column at all levels."""
    return sum(2**level + apart for level in range(1, levels + 1))


def _slice_of(level: int, kinds: int, apart: int) -> slice:
    """The slice of a level's cells among those of all levels; a column uses `kinds` of `apart` cells."""
    start = _width(level - 1, apart)
    return slice(start, start + 2**level + kinds)
