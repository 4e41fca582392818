"""Belief propagation: the exact distribution of every clique from potentials.

Potentials are logarithms of factors and are added and normalised as logarithms, so nothing underflows,
however unlikely a cell is. Each propagation computes one exponential per cell.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch

from synth.graphical.junction_tree import JunctionTree
from synth.graphical.tables import gather, spread
from synth.planning.triangulation import Attributes

Tables = Mapping[Attributes, torch.Tensor]


@dataclass(frozen=True)
class Beliefs:
    """The distribution of every clique of a junction tree."""

    tree: JunctionTree
    tables: tuple[torch.Tensor, ...]
    log_partition: float
    """The logarithm of the sum over all cells of the product of the factors."""

    @cached_property
    def separator_tables(self) -> tuple[torch.Tensor, ...]:
        """The distribution of the separator between each clique but the first and its parent."""
        return tuple(
            sum_to(table, clique, kept)
            for table, clique, kept in zip(
                self.tables[1:], self.tree.cliques[1:], self.tree.separators, strict=True
            )
        )

    def inside(self, wanted: Iterable[Attributes]) -> dict[Attributes, torch.Tensor]:
        """Cross tables of attributes that are together in some clique."""
        by_clique: dict[int, list[Attributes]] = {}
        for attributes in wanted:
            holder = self.tree.holder(attributes)
            assert holder is not None
            by_clique.setdefault(holder, []).append(attributes)
        found: dict[Attributes, torch.Tensor] = {}
        for clique, mine in by_clique.items():
            found |= gather(self.tables[clique], self.tree.cliques[clique], mine)
        return found


def propagate(tree: JunctionTree, potentials: Tables) -> Beliefs:
    """Collect messages from the leaves, then send the distributions of separators back to them."""
    given: list[dict[Attributes, torch.Tensor]] = [{} for _ in tree.cliques]
    for attributes, table in potentials.items():
        holder = tree.holder(attributes)
        assert holder is not None
        given[holder][attributes] = table
    conditionals = [torch.empty(0)] * len(tree.cliques)
    log_partition = 0.0
    for i in reversed(range(len(tree.cliques))):
        clique, kept = tree.cliques[i], tree.separators[i - 1] if i else ()
        shape = tree.shape(clique)
        joint = spread(given[i], clique, shape).expand(shape)
        summed = [axis for axis, name in enumerate(clique) if name not in kept]
        top = joint.amax(summed, keepdim=True)
        factors = (joint - top).exp_()
        total = factors.sum(summed, keepdim=True)
        conditionals[i] = factors.div_(total)
        message = (top + total.log()).squeeze(summed)
        if i == 0:
            log_partition = message.item()
            continue
        parent = given[tree.parent(i)]
        parent[kept] = parent[kept] + message if kept in parent else message
    for i in range(1, len(tree.cliques)):
        clique, parent_at, kept = tree.cliques[i], tree.parent(i), tree.separators[i - 1]
        shares = sum_to(conditionals[parent_at], tree.cliques[parent_at], kept)
        ours = [
            size if name in kept else 1
            for name, size in zip(clique, tree.shape(clique), strict=True)
        ]
        conditionals[i].mul_(shares.reshape(ours))
    return Beliefs(tree, tuple(conditionals), log_partition)


def sum_to(table: torch.Tensor, attributes: Attributes, kept: Iterable[str]) -> torch.Tensor:
    """Sum a table over all attributes that are not kept."""
    remaining = set(kept)
    summed = [axis for axis, name in enumerate(attributes) if name not in remaining]
    return table.sum(summed) if summed else table
