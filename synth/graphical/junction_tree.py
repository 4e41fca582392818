"""Junction trees: trees of cliques in which the cliques with a common attribute are connected."""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from synth.domain import Domain
from synth.planning.triangulation import Attributes, triangulate


@dataclass(frozen=True)
class JunctionTree:
    """Cliques, each after its parent. Attributes are in the domain's order everywhere.

    Parts of the model without common attributes are connected by empty separators.
    """

    domain: Domain
    cliques: tuple[Attributes, ...]
    parents: tuple[int, ...]
    """The position of the parent of each clique but the first."""

    @classmethod
    def of(cls, sets: Iterable[Collection[str]], domain: Domain) -> Self:
        """The tree of a small triangulated graph that contains every set and every attribute."""
        cliques = triangulate(sets, domain.size_of)
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

    def holder(self, attributes: Collection[str]) -> int | None:
        """The smallest clique that contains all of the attributes, or None."""
        wanted = set(attributes)
        holding = [i for i, clique in enumerate(self.cliques) if wanted <= set(clique)]
        return min(holding, key=lambda i: math.prod(self.shape(self.cliques[i])), default=None)
