"""Triangulation: every set is in a clique, and the size is what is really built."""

import math
import random
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from synth.domain import Domain
from synth.graphical.junction_tree import JunctionTree
from synth.planning.triangulation import has_room, model_cells, triangulate
from tests.synth.graphical.models import domains, sets_of


@settings(max_examples=40)
@given(st.data())
def test_cliques_hold_every_set_and_every_attribute_and_none_holds_another(
    data: st.DataObject,
) -> None:
    domain = data.draw(domains())
    sets = data.draw(sets_of(domain))
    cliques = [set(clique) for clique in triangulate(sets, domain.size_of)]
    for needed in (*sets, *({name} for name in domain.names)):
        assert any(clique.issuperset(needed) for clique in cliques)
    assert not any(a <= b for a in cliques for b in cliques if a is not b)


@settings(max_examples=40)
@given(st.data())
def test_the_size_foretold_is_the_size_built(data: st.DataObject) -> None:
    domain = data.draw(domains())
    sets = data.draw(sets_of(domain))
    tree = JunctionTree.of(sets, domain)
    built = sum(math.prod(tree.shape(clique)) for clique in tree.cliques)
    assert model_cells(sets, domain.size_of) == tree.cells == built


@settings(max_examples=40)
@given(st.data())
def test_the_order_of_the_sets_does_not_matter(data: st.DataObject) -> None:
    domain = data.draw(domains())
    sets = data.draw(sets_of(domain))
    shuffled = random.Random(1).sample(sets, len(sets))
    assert triangulate(shuffled, domain.size_of) == triangulate(sets, domain.size_of)


@settings(max_examples=40)
@given(st.data())
def test_room_is_there_for_exactly_the_cells_of_the_model(data: st.DataObject) -> None:
    domain = data.draw(domains())
    sets = data.draw(sets_of(domain))
    cells = model_cells(sets, domain.size_of)
    assert has_room(sets, domain.size_of, max_cells=cells)
    assert not has_room(sets, domain.size_of, max_cells=cells - 1)


def test_wide_tables_are_known_to_have_no_room_without_listing_cliques() -> None:
    sizes = {f"c{i}": 10 for i in range(300)}
    assert not has_room(combinations(sizes, 2), sizes, max_cells=2**22)


def test_trees_need_no_more_than_their_edges() -> None:
    sizes = {"a": 2, "b": 3, "c": 5, "d": 7, "alone": 11}
    chain = [("a", "b"), ("b", "c"), ("c", "d")]
    assert set(triangulate(chain, sizes)) == {*chain, ("alone",)}
    assert model_cells(chain, sizes) == 6 + 15 + 35 + 11


def test_a_cycle_is_cut_where_it_is_cheapest() -> None:
    sizes = {"wide": 100, "b": 2, "far": 100, "d": 2}
    cycle = [("wide", "b"), ("b", "far"), ("far", "d"), ("wide", "d")]
    assert model_cells(cycle, sizes) == 2 * 100 * 2 * 2


def test_cliques_meet_in_separators() -> None:
    """What two cliques share is in every clique between them."""
    domain = Domain(tuple("abcdefgh"), (2, 3, 2, 4, 2, 3, 2, 2))
    ring = [(a, b) for a, b in zip("abcdefg", "bcdefga", strict=True)]
    tree = JunctionTree.of(ring, domain)
    assert ("h",) in tree.cliques
    for i, clique in enumerate(tree.cliques):
        for other in tree.cliques[:i]:
            at, path = i, []
            while at and tree.cliques[at] != other:
                path.append(tree.separators[at - 1])
                at = tree.parent(at)
            if tree.cliques[at] == other:
                assert all(set(clique) & set(other) <= set(s) for s in path)
