"""How large an exact graphical model of some marginals is, before anything is built.

A model of marginals over sets of attributes keeps one table for each clique of a triangulated graph
in which the attributes of every set are neighbours. Which edges are added decides the size; finding
the fewest cells is NP-hard, so two rules are tried, in a fixed order, and the better one is taken.
Everything here follows from public names and sizes.

Book: Koller, Friedman (2009), Probabilistic Graphical Models, section 9.4.3.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import accumulate
from operator import mul

Attributes = tuple[str, ...]


def triangulate(sets: Iterable[Collection[str]], sizes: Mapping[str, int]) -> list[Attributes]:
    """The cliques of a small triangulated graph that holds every set, and every attribute of `sizes`.

    Attributes of a clique are in the order of `sizes`.
    """
    found = [list(cliques) for cliques in _by_each_rule(sets, sizes)]
    return min(found, key=lambda cliques: total_cells(cliques, sizes))


def model_cells(sets: Iterable[Collection[str]], sizes: Mapping[str, int]) -> int:
    """The cells of the exact model of some marginals."""
    return total_cells(triangulate(sets, sizes), sizes)


def has_room(sets: Iterable[Collection[str]], sizes: Mapping[str, int], *, max_cells: int) -> bool:
    """Whether that model stays within a number of cells; often known before it is complete."""
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
    """The cells of the smallest model of one of some marginals, beside which each column is alone."""
    widths = ([sizes[name] for name in names] for names in sets)
    return sum(sizes.values()) + min(math.prod(each) - sum(each) for each in widths)


def total_cells(cliques: Iterable[Collection[str]], sizes: Mapping[str, int]) -> int:
    """The cells of the tables of some cliques together."""
    return sum(math.prod(sizes[name] for name in clique) for clique in cliques)


def _by_each_rule(
    sets: Iterable[Collection[str]], sizes: Mapping[str, int]
) -> Iterator[Iterator[Attributes]]:
    names, weights = tuple(sizes), tuple(sizes.values())
    graph = _neighbours(sets, sizes)

    def cells(node: int, neighbours: list[int]) -> int:
        """Cells of the table that eliminating a node makes."""
        return weights[node] * math.prod(weights[i] for i in _members(neighbours[node]))

    def added_cells(node: int, neighbours: list[int]) -> int:
        """Cells of the pairs of neighbours that eliminating a node joins, twice."""
        mine, added = neighbours[node], 0
        for i in _members(mine):
            strangers = mine & ~neighbours[i] & ~(1 << i)
            if strangers:
                added += weights[i] * sum(weights[j] for j in _members(strangers))
        return added

    for cost in (cells, added_cells):
        yield (tuple(names[i] for i in _members(clique)) for clique in _eliminate(graph, cost))


def _neighbours(sets: Iterable[Collection[str]], sizes: Mapping[str, int]) -> list[int]:
    """For each attribute, those that share a set with it, as the bits of a whole number."""
    bits = {name: 1 << position for position, name in enumerate(sizes)}
    graph = dict.fromkeys(sizes, 0)
    for attributes in sets:
        together = sum(map(bits.__getitem__, attributes))
        for name in attributes:
            graph[name] |= together
    return [neighbours & ~bits[name] for name, neighbours in graph.items()]


def _least_cells(graph: list[int], weights: list[int], *, enough: int) -> int:
    """Cells that every triangulation has at least, counted up to `enough`.

    Where each node of some part of a graph has d neighbours in it, a clique has d + 1 nodes.
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
    """Remove the cheapest node, join its neighbours, and so on: the largest cliques that are seen.

    Sets of nodes are the bits of whole numbers.
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
        # A new edge between two neighbours also changes what their own neighbours would add.
        touched = neighbours
        for other in _members(neighbours):
            touched |= graph[other]
        stale = {other for other in _members(touched) if other in left}


@lru_cache(maxsize=2**14)
def _members(nodes: int) -> tuple[int, ...]:
    """The positions of the bits of a number, smallest first."""
    found = []
    while nodes:
        lowest = nodes & -nodes
        found.append(lowest.bit_length() - 1)
        nodes ^= lowest
    return tuple(found)
