"""Belief propagation: the exact distribution of every clique from potentials.

Potentials are logarithms of factors and are added and normalised as logarithms, so nothing underflows,
however unlikely a cell is. Each propagation computes one exponential per cell.
"""

from collections.abc import Iterable, Mapping, Sequence
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
        places = {attributes: self.tree.place(attributes) for attributes in wanted}
        by_clique: dict[int, list[Attributes]] = {}
        for place in places.values():
            assert place.clique is not None
            by_clique.setdefault(place.clique, []).append(place.names)
        found: dict[Attributes, torch.Tensor] = {}
        for clique, mine in by_clique.items():
            found |= gather(self.tables[clique], self.tree.cliques[clique], mine)
        return {names: place.from_tree(found[place.names]) for names, place in places.items()}


def new_tables(tree: JunctionTree) -> list[torch.Tensor]:
    """Memory for the tables of all cliques."""
    return [torch.empty(tree.shape(clique), dtype=torch.float64) for clique in tree.cliques]


def propagate(
    tree: JunctionTree, potentials: Tables, *, into: Sequence[torch.Tensor] | None = None
) -> Beliefs:
    """Collect messages from the leaves, then send the distributions of separators back to them.

    The tables of cliques are stored in `into`, so that many propagations need no new memory.
    """
    tables = new_tables(tree) if into is None else into
    given: list[dict[Attributes, torch.Tensor]] = [{} for _ in tree.cliques]
    for attributes, table in potentials.items():
        place = tree.place(attributes)
        assert place.clique is not None
        given[place.clique][place.names] = place.to_tree(table)
    totals = [torch.empty(0)] * len(given)
    log_partition = 0.0
    for i in reversed(range(len(tree.cliques))):
        clique, kept = tree.cliques[i], tree.separators[i - 1] if i else ()
        shape = tree.shape(clique)
        joint = spread(given[i], clique, shape, into=tables[i]).expand(shape)
        summed = [axis for axis, name in enumerate(clique) if name not in kept]
        top = joint.amax(summed, keepdim=True)
        torch.sub(joint, top, out=tables[i]).exp_()
        totals[i] = tables[i].sum(summed, keepdim=True)
        message = (top + totals[i].log()).squeeze(summed)
        if i == 0:
            log_partition = message.item()
            continue
        parent = given[tree.parent(i)]
        parent[kept] = parent[kept] + message if kept in parent else message
    tables[0].div_(totals[0])
    for i in range(1, len(tables)):
        parent_at, kept = tree.parent(i), tree.separators[i - 1]
        shares = sum_to(tables[parent_at], tree.cliques[parent_at], kept)
        tables[i].mul_(shares.reshape(totals[i].shape) / totals[i])
    return Beliefs(tree, tuple(tables), log_partition)


def sum_to(table: torch.Tensor, attributes: Attributes, kept: Iterable[str]) -> torch.Tensor:
    """Sum a table over all attributes that are not kept.

    One by one, the widest first, which is faster than all at once.
    """
    remaining = set(kept)
    summed = [axis for axis, name in enumerate(attributes) if name not in remaining]
    for axis in sorted(summed, key=lambda axis: -table.shape[axis]):
        table = table.sum(axis, keepdim=True)
    return table.squeeze(summed)
