"""Junction trees: trees of cliques in which the cliques with a common attribute are connected."""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import torch

from synth.domain import Domain
from synth.planning.triangulation import Attributes, triangulate


@dataclass(frozen=True)
class Place:
    """The position of a table in a tree."""

    clique: int | None
    """The smallest clique that contains all of the table's attributes, or None."""
    names: Attributes
    """The attributes in the tree's order."""
    axes: tuple[int, ...]
    """The table's axes in that order."""

    def to_tree(self, table: torch.Tensor) -> torch.Tensor:
        """The table with its axes in the tree's order."""
        return table.permute(self.axes)

    def from_tree(self, table: torch.Tensor) -> torch.Tensor:
        """A table of the tree with its axes in their own order."""
        return table.permute([self.axes.index(axis) for axis in range(len(self.axes))])


@dataclass(frozen=True)
class JunctionTree:
    """Cliques, each after its parent.

    Attributes of cliques and separators are in the order of their sizes, the largest last: adding and
    summing tables is fastest if the axes that vary fastest are long. Parts of the model without common
    attributes are connected by empty separators.
    """

    domain: Domain
    cliques: tuple[Attributes, ...]
    parents: tuple[int, ...]
    """The position of the parent of each clique but the first."""

    @classmethod
    def of(cls, sets: Iterable[Collection[str]], domain: Domain) -> Self:
        """The tree of a small triangulated graph that contains every set and every attribute."""
        rank = _ranks(domain)
        cliques = [
            tuple(sorted(clique, key=rank.__getitem__))
            for clique in triangulate(sets, domain.size_of)
        ]
        # The root is the largest table, so that it is never the argument of another one.
        largest = max(range(len(cliques)), key=lambda i: domain.project(cliques[i]).cells)
        ordered, parents = [cliques.pop(largest)], []
        while cliques:
            # Prim's algorithm: a spanning tree with the most shared attributes is a junction tree
            # (Koller, Friedman 2009, theorem 10.6).
            _, child, parent = max(
                (len(set(clique) & set(other)), -i, -j)
                for i, clique in enumerate(cliques)
                for j, other in enumerate(ordered)
            )
            ordered.append(cliques.pop(-child))
            parents.append(-parent)
        return cls(domain, tuple(ordered), tuple(parents))

    @property
    def cells(self) -> int:
        """Total number of cells of all cliques."""
        return sum(math.prod(self.shape(clique)) for clique in self.cliques)

    def shape(self, attributes: Iterable[str]) -> tuple[int, ...]:
        """The sizes of some attributes."""
        return tuple(self.domain.size_of[name] for name in attributes)

    def parent(self, clique: int) -> int:
        """The parent of a clique that is not the first."""
        return self.parents[clique - 1]

    @cached_property
    def separators(self) -> tuple[Attributes, ...]:
        """The attributes that each clique but the first shares with its parent."""
        return tuple(
            tuple(name for name in clique if name in self.cliques[parent])
            for clique, parent in zip(self.cliques[1:], self.parents, strict=True)
        )

    def place(self, attributes: Attributes) -> Place:
        """The position of a table of some attributes."""
        if attributes not in self._places:
            wanted = set(attributes)
            holding = [i for i, clique in enumerate(self.cliques) if wanted <= set(clique)]
            clique = min(
                holding, key=lambda i: math.prod(self.shape(self.cliques[i])), default=None
            )
            ordered = sorted(attributes, key=self._rank.__getitem__)
            axes = tuple(attributes.index(name) for name in ordered)
            self._places[attributes] = Place(clique, tuple(ordered), axes)
        return self._places[attributes]

    @cached_property
    def _places(self) -> dict[Attributes, Place]:
        return {}

    @cached_property
    def _rank(self) -> dict[str, int]:
        return _ranks(self.domain)


def _ranks(domain: Domain) -> dict[str, int]:
    """The position of each attribute in the order of sizes."""
    by_size = sorted(domain.names, key=domain.size_of.__getitem__)
    return {name: position for position, name in enumerate(by_size)}
