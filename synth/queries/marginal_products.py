"""Marginals of a mixture of products, as a few matrix products.

The mean over components of p_a p_b p_c is (p_a * p_b)^T p_c / K. Marginals that share all but their
largest attribute are therefore one matrix product, and all pairs together are one: P^T P / K. A last
permutation puts the cells into the order of the blocks, without indexing single queries.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.checkpoint import checkpoint

from synth.domain import Domain
from synth.planning.memory import KEPT_PLANS, KEPT_TABLES, MAX_ENTRIES
from synth.queries.marginal_counter import TableShape
from synth.queries.readable import Products


@dataclass(frozen=True)
class MatrixProduct:
    """One matrix product: a table of leading cells times the columns of the following attributes."""

    leading: tuple[str, ...]
    """Attributes whose joint cells are the rows; if stacked, attributes whose codes are the rows."""
    following: tuple[str, ...]
    stacked: bool = False

    def rows(self, domain: Domain) -> int:
        """Number of rows."""
        sizes = [domain.size_of[name] for name in self.leading]
        return sum(sizes) if self.stacked else math.prod(sizes)

    def product(self, mixture: Products) -> torch.Tensor:
        """The sum over the mixture's components."""
        lead = mixture.columns if self.stacked else mixture.joint
        return lead(self.leading).T @ mixture.columns(self.following)


class MarginalProducts:
    """A plan for answering marginals on any mixture over a domain."""

    def __init__(self, blocks: Sequence[TableShape], domain: Domain) -> None:
        self._matrices = _matrices_of(blocks, domain)
        self._entries = sum(matrix.rows(domain) for matrix in self._matrices)
        self._order = _order(blocks, self._matrices, domain)

    def answers(self, mixture: Products) -> torch.Tensor:
        """All cells of all blocks, in their order."""
        components = len(mixture.probabilities)
        is_large = components * self._entries > KEPT_TABLES * MAX_ENTRIES
        recompute = is_large and torch.is_grad_enabled()
        matrices = [_sum_over_components(matrix, mixture, recompute) for matrix in self._matrices]
        cells = torch.cat([matrix.flatten() for matrix in matrices]) / components
        return cells.index_select(0, self._order.to(cells.device))


@lru_cache(maxsize=KEPT_PLANS)
def products_of(blocks: tuple[TableShape, ...], domain: Domain) -> MarginalProducts:
    """Return a cached plan, since every step of a fit uses the same one."""
    return MarginalProducts(blocks, domain)


def _matrices_of(blocks: Sequence[TableShape], domain: Domain) -> list[MatrixProduct]:
    followers: dict[tuple[str, ...], dict[str, None]] = {}
    for block in blocks:
        *leading, last = _by_size(block.attributes, domain)
        followers.setdefault(tuple(leading), {})[last] = None
    pairs = [
        (leading[0], last)
        for leading in followers
        if len(leading) == 1
        for last in followers[leading]
    ]
    stacked = _all_pairs(pairs, domain)
    return [
        *([stacked] if stacked else []),
        *(
            MatrixProduct(leading, tuple(last))
            for leading, last in followers.items()
            if not (stacked and len(leading) == 1)
        ),
    ]


def _all_pairs(pairs: Sequence[tuple[str, str]], domain: Domain) -> MatrixProduct | None:
    """P^T P over the attributes in pairs, if most of its upper half is needed."""
    names = tuple(dict.fromkeys(name for pair in pairs for name in pair))
    width = sum(domain.size_of[name] for name in names)
    asked = sum(domain.size_of[a] * domain.size_of[b] for a, b in pairs)
    return MatrixProduct(names, names, stacked=True) if asked > 0.3 * width**2 else None


def _by_size(attributes: Sequence[str], domain: Domain) -> tuple[str, ...]:
    """Sort by size, smallest first: the largest is never part of a table of joint probabilities."""
    return tuple(sorted(attributes, key=lambda name: (domain.size_of[name], name)))


def _sum_over_components(matrix: MatrixProduct, mixture: Products, recompute: bool) -> torch.Tensor:
    """A matrix product, in batches of components whose joint table fits in memory."""

    def product(probabilities: torch.Tensor) -> torch.Tensor:
        return matrix.product(mixture.with_components(mixture.domain, probabilities))

    def batch(probabilities: torch.Tensor) -> torch.Tensor:
        if recompute:
            return cast(torch.Tensor, checkpoint(product, probabilities, use_reentrant=False))
        return product(probabilities)

    at_once = max(1, MAX_ENTRIES // matrix.rows(mixture.domain))
    if len(mixture.probabilities) <= at_once and not recompute:
        return matrix.product(mixture)
    first, *rest = torch.split(mixture.probabilities, at_once)
    total = batch(first)
    for probabilities in rest:
        total = total + batch(probabilities)
    return total


def _order(
    blocks: Sequence[TableShape], matrices: Sequence[MatrixProduct], domain: Domain
) -> torch.Tensor:
    """The positions of each block's cells among the cells of all matrices, one after another."""
    cells_of: dict[tuple[str, ...], NDArray[np.int64]] = {}
    offset = 0
    for matrix in matrices:
        columns = _slices(matrix.following, domain)
        height, width = matrix.rows(domain), sum(domain.size_of[n] for n in matrix.following)
        positions = offset + np.arange(height * width).reshape(height, width)
        for last, column in columns.items():
            if matrix.stacked:
                for name, row in _slices(matrix.leading, domain).items():
                    cells_of[name, last] = positions[row, column]
            else:
                cells_of[*matrix.leading, last] = positions[:, column]
        offset += positions.size
    ordered = []
    for block in blocks:
        by_size = _by_size(block.attributes, domain)
        cells = cells_of[by_size].reshape([domain.size_of[name] for name in by_size])
        ordered.append(cells.transpose([by_size.index(name) for name in block.attributes]).ravel())
    return torch.from_numpy(np.concatenate(ordered))


def _slices(names: Sequence[str], domain: Domain) -> dict[str, slice]:
    """The slice of each attribute's columns when all columns are side by side."""
    edges = np.cumsum([0, *(domain.size_of[name] for name in names)])
    return {name: slice(a, b) for name, a, b in zip(names, edges, edges[1:], strict=False)}
