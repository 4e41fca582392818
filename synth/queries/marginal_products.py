"""Marginals of a mixture of products, as a few matrix products.

The mean over components of p_a p_b p_c is (p_a * p_b)^T p_c / K. Marginals that share all but their
largest attribute are therefore one matrix product, and all pairs together are one: P^T P / K. A last
permutation puts the cells into the order of the blocks, without indexing single queries.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray

from synth.domain import Domain
from synth.planning.memory import KEPT_PLANS, MAX_ENTRIES
from synth.queries.marginal_counter import TableShape
from synth.queries.product_sums import JointSums, PairSums, Sums, all_sums
from synth.queries.readable import Products

PRODUCT_COST = 10_000
COLUMN_COST = 150
"""Costs of a separate matrix product beside its arithmetic, in operations for each component: fixed, and
for each of its columns, which are copied. Measured with 1,000 components, for answers and gradient."""

Followers = dict[tuple[str, ...], dict[str, None]]
"""For the leading attributes of some marginals: their largest attributes."""
Places = dict[tuple[str, ...], NDArray[np.int64]]
"""The positions of a marginal's cells among all sums, with one axis for each of its attributes."""


class MarginalProducts:
    """A plan for answering marginals on any mixture over a domain."""

    def __init__(self, blocks: Sequence[TableShape], domain: Domain) -> None:
        self._names = _arrange(blocks, domain)
        rows = _rows_of(self._names, domain)
        followers = _followers(blocks, domain)
        pairs = _all_pairs(followers, domain)
        self._parts: list[Sums] = []
        places: Places = {}
        if pairs:
            part = PairSums(_runs(sorted((rows[name] for name in pairs), key=_start)))
            _place_pairs(part, pairs, rows, places)
            self._parts.append(part)
        for leading, last in followers.items():
            following = sorted(last, key=lambda name: rows[name].start)
            is_in_pairs = len(leading) == 1 or (not leading and pairs.issuperset(following))
            if pairs and is_in_pairs:
                continue
            joint = JointSums(
                tuple(rows[name] for name in leading), _runs([rows[name] for name in following])
            )
            first = sum(each.size for each in self._parts)
            _place_joint(joint, leading, following, rows, places, first=first)
            self._parts.append(joint)
        self._order = _order(blocks, places, domain)

    def answers(self, mixture: Products) -> torch.Tensor:
        """All cells of all blocks, in their order."""
        is_whole = self._names == mixture.domain.names
        probabilities = mixture.probabilities if is_whole else mixture.columns(self._names)
        if self._order.device != probabilities.device:
            self._order = self._order.to(probabilities.device)
        cells = all_sums(probabilities, self._parts, limit=MAX_ENTRIES)
        return cells.index_select(0, self._order) / len(probabilities)


@lru_cache(maxsize=KEPT_PLANS)
def products_of(blocks: tuple[TableShape, ...], domain: Domain) -> MarginalProducts:
    """Return a cached plan, since every step of a fit uses the same one."""
    return MarginalProducts(blocks, domain)


def _arrange(blocks: Sequence[TableShape], domain: Domain) -> tuple[str, ...]:
    """The attributes of the blocks. Without larger blocks than pairs, a whole domain keeps its order.

    Otherwise they are ordered by size, so that the attributes that follow others are often adjacent.
    """
    used = {name for block in blocks for name in block.attributes}
    names = tuple(name for name in domain.names if name in used)
    if max(len(block.attributes) for block in blocks) <= 2:
        return names
    return _by_size(names, domain)


def _followers(blocks: Sequence[TableShape], domain: Domain) -> Followers:
    followers: Followers = {}
    for block in blocks:
        *leading, last = _by_size(block.attributes, domain)
        followers.setdefault(tuple(leading), {})[last] = None
    return followers


def _all_pairs(followers: Followers, domain: Domain) -> set[str]:
    """The attributes in pairs, if P^T P costs less than separate products; otherwise none."""
    pairs = {leading: last for leading, last in followers.items() if len(leading) == 1}
    names = {name for leading, last in pairs.items() for name in (*leading, *last)}
    # P^T P takes 1 and its gradient 2 operations for each entry; separate products take 2 and 4.
    together = 3 * _width(names, domain) ** 2
    separate = sum(
        PRODUCT_COST + _width(last, domain) * (COLUMN_COST + 6 * domain.size_of[leading])
        for (leading,), last in pairs.items()
    )
    return names if together < separate else set()


def _width(names: Iterable[str], domain: Domain) -> int:
    return sum(domain.size_of[name] for name in names)


def _by_size(attributes: Sequence[str], domain: Domain) -> tuple[str, ...]:
    """Sort by size, smallest first: the largest is never part of a table of joint probabilities."""
    return tuple(sorted(attributes, key=lambda name: (domain.size_of[name], name)))


def _rows_of(names: Sequence[str], domain: Domain) -> dict[str, slice]:
    """The codes of each attribute, when the attributes are side by side."""
    edges = np.cumsum([0, *(domain.size_of[name] for name in names)]).tolist()
    return {name: slice(a, b) for name, (a, b) in zip(names, pairwise(edges), strict=True)}


def _start(rows: slice) -> int:
    return int(rows.start)


def _runs(ordered: Sequence[slice]) -> tuple[slice, ...]:
    """Adjacent slices joined."""
    runs: list[slice] = []
    for rows in ordered:
        if runs and runs[-1].stop == rows.start:
            runs[-1] = slice(runs[-1].start, rows.stop)
        else:
            runs.append(rows)
    return tuple(runs)


def _place_pairs(
    part: PairSums, names: set[str], rows: Mapping[str, slice], places: Places
) -> None:
    """Note where the pairs of some attributes are, and the attributes alone."""
    ordered = sorted(names, key=lambda name: rows[name].start)
    widths = [rows[name].stop - rows[name].start for name in ordered]
    codes = np.split(np.arange(part.width), np.cumsum(widths)[:-1])
    # The position of each row's entry in column 0, which may be before its panel.
    starts, first = np.empty(part.width, np.int64), 0
    for a, b in pairwise(part.edges):
        starts[a:b] = first - a + (part.width - a) * np.arange(b - a)
        first += (b - a) * (part.width - a)
    for i, name in enumerate(ordered):
        places[(name,)] = first + codes[i]
        for j in range(i + 1, len(ordered)):
            cells = starts[codes[i]][:, None] + codes[j]
            places[name, ordered[j]] = cells
            places[ordered[j], name] = cells.T


def _place_joint(
    part: JointSums,
    leading: tuple[str, ...],
    following: Sequence[str],
    rows: Mapping[str, slice],
    places: Places,
    *,
    first: int,
) -> None:
    """Note where the marginals of a product are, whose sums begin at `first`."""
    positions = first + np.arange(part.size).reshape(part.height, part.width)
    shape = [each.stop - each.start for each in part.leading]
    column = 0
    for name in following:
        width = rows[name].stop - rows[name].start
        cells = positions[:, column : column + width]
        places[*leading, name] = cells.reshape([*shape, width])
        column += width


def _order(blocks: Sequence[TableShape], places: Places, domain: Domain) -> torch.Tensor:
    """Where each block's cells are among all sums."""
    ordered = []
    for block in blocks:
        by_size = _by_size(block.attributes, domain)
        axes = [by_size.index(name) for name in block.attributes]
        ordered.append(places[by_size].transpose(axes).ravel())
    return torch.from_numpy(np.concatenate(ordered))
