"""Hierarchical tables of a mixture over whole groups, as matrix products.

In one component everything is independent: the size m of a group, its columns, and the individuals
at its places. Let g_j = P(m >= j) be the chance that place j is taken, and t_j that the individual
there is in a cell. Per group, a cell then has (Liu, Wu 2022, section 4.2)

    sum_j g_j t_j               individuals,
    V_1                         groups, where V_j = g_j t_j + (1 - t_j) V_{j+1} and V_{M+1} = 0:

the paper's sum over m of P(m) (1 - prod_{j <= m} (1 - t_j)), written so that only positive numbers are
added and none is divided by. Either is multiplied by the chances of the group's own cells and averaged
over the components: one matrix product for all tables with the same attributes of individuals.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, cast

import torch
from torch.utils.checkpoint import checkpoint

from synth.domain import SIZE, Domain, at_place
from synth.spec.memory import KEPT_PLANS, KEPT_TABLES, MAX_ENTRIES

if TYPE_CHECKING:
    from synth.models.product import ProductMixture
    from synth.queries.hierarchical import Hierarchical


@dataclass(frozen=True)
class Block:
    """Tables of one level that have the same attributes of individuals."""

    level: str
    own: tuple[str, ...]
    following: tuple[str, ...]
    """The last attribute, where all are of groups: it never enters a table of joint probabilities."""
    leading: tuple[tuple[str, ...], ...]
    """The other attributes of each table, which are of groups."""
    positions: tuple[int, ...]
    """Where each table is among all that are asked for."""

    def heights(self, domain: Domain) -> list[int]:
        """How many cells the leading attributes of each table have."""
        return [prod(domain.size_of[name] for name in names) for names in self.leading]

    def entries(self, domain: Domain) -> int:
        """Numbers that a component's part of the product is made of."""
        places = domain.size_of[SIZE]
        kinds = prod(domain.size_of[at_place(name, 0)] for name in self.own)
        following = prod(domain.size_of[name] for name in self.following)
        return sum(self.heights(domain)) + 2 * places * kinds + following

    def product(self, mixture: "ProductMixture") -> torch.Tensor:
        """The sum over the mixture's components: one row for each cell of the leading attributes."""
        leading = torch.cat([mixture.joint(names) for names in self.leading], dim=1)
        return leading.T @ (self._members(mixture) * mixture.joint(self.following))

    def _members(self, mixture: "ProductMixture") -> torch.Tensor:
        """Per component and kind of individual: how many there are, or whether there is one."""
        taken = mixture.columns([SIZE]).flip(1).cumsum(1).flip(1)
        chances = _chances(mixture, self.own, places=taken.shape[1])
        if self.level == "individual":
            return torch.bmm(taken[:, None, :], chances).squeeze(1)
        found = torch.zeros_like(chances[:, 0])
        for place in reversed(range(taken.shape[1])):
            found = found.lerp(taken[:, place, None], chances[:, place])
        return found


def _chances(mixture: "ProductMixture", own: Sequence[str], *, places: int) -> torch.Tensor:
    """The chance of every kind of individual, by component and place."""
    components = len(mixture.probabilities)
    chances = mixture.probabilities.new_ones((components, places, 1))
    for name in own:
        columns = mixture.columns([at_place(name, place) for place in range(places)])
        each = columns.reshape(components, places, -1)
        chances = (chances[..., :, None] * each[..., None, :]).flatten(2)
    return chances


class HierarchicalProducts:
    """How to answer some tables on any mixture over the groups of a schema."""

    def __init__(self, groups: Sequence["Hierarchical"], domain: Domain) -> None:
        self._blocks = _blocks_of(groups)
        self._entries = sum(block.entries(domain) for block in self._blocks)

    def answers(self, mixture: "ProductMixture") -> torch.Tensor:
        """All cells of all tables, in their order."""
        components = len(mixture.probabilities)
        is_large = components * self._entries > KEPT_TABLES * MAX_ENTRIES
        recompute = is_large and torch.is_grad_enabled()
        found: dict[int, torch.Tensor] = {}
        for block in self._blocks:
            cells = _sum_over_components(block, mixture, recompute)
            # Split, not sliced: the gradient of a slice is as large as the whole.
            tables = torch.split(cells, block.heights(mixture.domain))
            found |= zip(block.positions, (table.flatten() for table in tables), strict=True)
        return torch.cat([found[position] for position in range(len(found))]) / components


@lru_cache(maxsize=KEPT_PLANS)
def products_of(groups: tuple["Hierarchical", ...], domain: Domain) -> HierarchicalProducts:
    """The same plan is used in every step of a fit."""
    return HierarchicalProducts(groups, domain)


def _blocks_of(groups: Sequence["Hierarchical"]) -> list[Block]:
    alike: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[int]] = {}
    for position, group in enumerate(groups):
        own = group.of_individuals
        following = () if own else group.attributes[-1:]
        alike.setdefault((group.level, own, following), []).append(position)
    return [
        Block(
            level,
            own,
            following,
            tuple(
                groups[i].attributes[: len(groups[i].attributes) - len(own + following)] for i in at
            ),
            tuple(at),
        )
        for (level, own, following), at in alike.items()
    ]


def _sum_over_components(block: Block, mixture: "ProductMixture", recompute: bool) -> torch.Tensor:
    """A block's product, in batches of components whose tables fit."""

    def product(probabilities: torch.Tensor) -> torch.Tensor:
        return block.product(type(mixture)(mixture.domain, probabilities))

    def batch(probabilities: torch.Tensor) -> torch.Tensor:
        if recompute:
            return cast(torch.Tensor, checkpoint(product, probabilities, use_reentrant=False))
        return product(probabilities)

    at_once = max(1, MAX_ENTRIES // block.entries(mixture.domain))
    if len(mixture.probabilities) <= at_once and not recompute:
        return block.product(mixture)
    first, *rest = torch.split(mixture.probabilities, at_once)
    total = batch(first)
    for probabilities in rest:
        total = total + batch(probabilities)
    return total
