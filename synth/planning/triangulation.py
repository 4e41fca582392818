"""The size of an exact graphical model of given marginals, before it is built.

A model of marginals over sets of attributes keeps one table for each clique of a triangulated graph
in which the attributes of every set are neighbours. The size depends on which edges are added; finding
the fewest cells is NP-hard, so two rules are tried, in a fixed order, and the better one is used.
Everything here depends only on public names and sizes.

Book: Koller, Friedman (2009), Probabilistic Graphical Models, section 9.4.3.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from operator import mul

Attributes = tuple[str, ...]

MAX_PRODUCTS = 2**17
"""Number of products of sizes that are stored."""


def triangulate(sets: Iterable[Collection[str]], sizes: Mapping[str, int]) -> list[Attributes]:
    """The cliques of a small triangulated graph that contains every set, and every attribute of `sizes`.

    Attributes of a clique are in the order of `sizes`.
    """
    found = [list(cliques) for cliques in _by_each_rule(sets, sizes)]
    return min(found, key=lambda cliques: total_cells(cliques, sizes))


def model_cells(sets: Iterable[Collection[str]], sizes: Mapping[str, int]) -> int:
    """Number of cells of the exact model of the marginals."""
    return total_cells(triangulate(sets, sizes), sizes)


def has_room(sets: Iterable[Collection[str]], sizes: Mapping[str, int], *, max_cells: int) -> bool:
    """Whether that model stays within `max_cells`; often decided before it is complete."""
    sets = list(sets)
    if _least_cells(_neighbours(sets, sizes), list(sizes.values()), enough=max_cells) > max_cells:
        return False
    for cliques in _by_each_rule(sets, sizes):
        left = max_cells
        for clique in cliques:
            left -= total_cells([clique], sizes)
            if left < 0:
                break
        else:
            return True
    return False


def smallest_model(sets: Iterable[Collection[str]], sizes: Mapping[str, int]) -> int:
    """Number of cells of the smallest model of one marginal, with every other column on its own."""
    widths = ([sizes[name] for name in names] for names in sets)
    return sum(sizes.values()) + min(math.prod(each) - sum(each) for each in widths)


def total_cells(cliques: Iterable[Collection[str]], sizes: Mapping[str, int]) -> int:
    """Total number of cells of the cliques' tables."""
    return sum(math.prod(sizes[name] for name in clique) for clique in cliques)


def _by_each_rule(
    sets: Iterable[Collection[str]], sizes: Mapping[str, int]
) -> Iterator[Iterator[Attributes]]:
    names, weights = tuple(sizes), tuple(sizes.values())
    graph, products = _neighbours(sets, sizes), _products_of(weights)

    def cells(node: int, neighbours: list[int]) -> int:
        """Cells of the table created by eliminating a node."""
        return weights[node] * products[neighbours[node]]

    def added_cells(node: int, neighbours: list[int]) -> int:
        """Twice the cells of the pairs of neighbours that eliminating a node connects."""
        mine, added = neighbours[node], 0
        for i in _members(mine):
            strangers = mine & ~neighbours[i] & ~(1 << i)
            if strangers:
                added += weights[i] * sum(weights[j] for j in _members(strangers))
        return added

    for cost in (cells, added_cells):
        yield (tuple(names[i] for i in _members(clique)) for clique in _eliminate(graph, cost))


def _neighbours(sets: Iterable[Collection[str]], sizes: Mapping[str, int]) -> list[int]:
    """For each attribute, the attributes that share a set with it, as the bits of an integer."""
    bits = {name: 1 << position for position, name in enumerate(sizes)}
    graph = dict.fromkeys(sizes, 0)
    for attributes in sets:
        together = sum(map(bits.__getitem__, attributes))
        for name in attributes:
            graph[name] |= together
    return [neighbours & ~bits[name] for name, neighbours in graph.items()]


def _least_cells(graph: list[int], weights: list[int], *, enough: int) -> int:
    """A lower bound on the cells of any triangulation, counted up to `enough`.

    If every node of a subgraph has d neighbours in it, some clique has at least d + 1 nodes.
    """
    smallest = list(accumulate(sorted(weights), mul))
    left = (1 << len(graph)) - 1
    degrees = {node: neighbours.bit_count() for node, neighbours in enumerate(graph)}
    cells = 0
    while degrees and cells <= enough:
        node = min(degrees, key=degrees.__getitem__)
        cells = max(cells, smallest[degrees.pop(node)])
        left &= ~(1 << node)
        for other in _members(graph[node] & left):
            degrees[other] -= 1
    return cells


def _eliminate(graph: list[int], cost: Callable[[int, list[int]], int]) -> Iterator[int]:
    """Repeatedly remove the cheapest node and connect its neighbours; yield the maximal cliques.

    Sets of nodes are the bits of integers.
    """
    graph, left = list(graph), dict.fromkeys(range(len(graph)), 0)
    stale = set(left)
    cliques: list[int] = []
    while left:
        for node in stale:
            left[node] = cost(node, graph)
        node = min(left, key=left.__getitem__)
        del left[node]
        neighbours = graph[node]
        clique = neighbours | 1 << node
        if not any(clique & ~other == 0 for other in cliques):
            cliques.append(clique)
            yield clique
        for other in _members(neighbours):
            graph[other] = (graph[other] | neighbours) & ~(1 << other | 1 << node)
        # A new edge between two neighbours also changes the cost of their own neighbours.
        touched = neighbours
        for other in _members(neighbours):
            touched |= graph[other]
        stale = {other for other in _members(touched) if other in left}


class _Products(dict[int, int]):
    """The product of some numbers, for each set of their positions, given as the bits of an integer."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = numbers
        self[0] = 1

    def __missing__(self, positions: int) -> int:
        if len(self) > MAX_PRODUCTS:
            self.clear()
            self[0] = 1
        rest = positions & (positions - 1)
        found = self[rest] * self._numbers[(positions ^ rest).bit_length() - 1]
        self[positions] = found
        return found


@lru_cache(maxsize=4)
def _products_of(numbers: tuple[int, ...]) -> _Products:
    return _Products(numbers)


@lru_cache(maxsize=2**14)
def _members(nodes: int) -> tuple[int, ...]:
    """The positions of the bits of a number, smallest first."""
    found = []
    while nodes:
        lowest = nodes & -nodes
        found.append(lowest.bit_length() - 1)
        nodes ^= lowest
    return tuple(found)
