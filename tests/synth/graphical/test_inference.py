"""Exact inference: every cross table equals a sum over all cells."""

from itertools import combinations
from typing import Any

import pytest
import torch
from hypothesis import given, settings

from synth.domain import Domain
from synth.graphical import elimination
from synth.graphical.elimination import Elimination
from synth.graphical.junction_tree import JunctionTree
from synth.graphical.propagation import propagate
from synth.models.graphical import GraphicalModel
from synth.planning.triangulation import Attributes
from tests.synth.graphical.models import by_hand, models, summed

Potentials = dict[Attributes, torch.Tensor]


@settings(max_examples=40)
@given(models())
def test_cliques_have_the_distribution_that_all_cells_have(
    model: tuple[Domain, Potentials],
) -> None:
    domain, potentials = model
    beliefs = propagate(JunctionTree.of(potentials, domain), potentials)
    whole = by_hand(domain, potentials)
    for clique, table in zip(beliefs.tree.cliques, beliefs.tables, strict=True):
        torch.testing.assert_close(table, summed(whole, domain, clique), rtol=1e-9, atol=1e-12)
    for kept, table in zip(beliefs.tree.separators, beliefs.separator_tables, strict=True):
        torch.testing.assert_close(table, summed(whole, domain, kept), rtol=1e-9, atol=1e-12)


@settings(max_examples=40)
@given(models())
def test_the_partition_function_is_the_sum_over_all_cells(model: tuple[Domain, Potentials]) -> None:
    domain, potentials = model
    beliefs = propagate(JunctionTree.of(potentials, domain), potentials)
    logits = torch.zeros(domain.sizes, dtype=torch.float64)
    for names, table in potentials.items():
        logits += table.reshape([s if n in names else 1 for n, s in domain.size_of.items()])
    assert beliefs.log_partition == pytest.approx(logits.flatten().logsumexp(0).item(), rel=1e-9)


def check_all_marginals(domain: Domain, potentials: Potentials) -> None:
    whole, model = by_hand(domain, potentials), GraphicalModel(domain, potentials)
    sets = [s for k in range(len(domain.names) + 1) for s in combinations(domain.names, k)]
    for names, table in zip(sets, model.marginals(sets), strict=True):
        expected = summed(whole, domain, names)
        torch.testing.assert_close(table, expected, rtol=1e-9, atol=1e-12)


@settings(max_examples=25)
@given(models())
def test_any_marginal_inside_cliques_or_across_is_exact(model: tuple[Domain, Potentials]) -> None:
    check_all_marginals(*model)


@settings(max_examples=10)
@given(models())
def test_what_is_computed_in_slices_is_the_same(model: tuple[Domain, Potentials]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elimination, "ELIMINATED_ENTRIES", 1)
        check_all_marginals(*model)


def test_no_table_on_the_way_is_larger_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A star whose leaves are queried together: without slices all would be in one table."""
    domain = Domain(tuple("abcdef"), (5, 4, 4, 4, 4, 4))
    chance = torch.Generator().manual_seed(1)
    potentials: Potentials = {
        ("a", leaf): torch.randn(5, 4, generator=chance, dtype=torch.float64) for leaf in "bcdef"
    }
    beliefs = propagate(JunctionTree.of(potentials, domain), potentials)
    seen: list[int] = []
    multiply = Elimination._multiply

    def watch(self: Elimination, *arguments: Any) -> Any:
        found = multiply(self, *arguments)
        seen.append(found[1].numel())
        return found

    monkeypatch.setattr(Elimination, "_multiply", watch)
    monkeypatch.setattr(elimination, "ELIMINATED_ENTRIES", 100)
    table = Elimination.of(beliefs).marginal(tuple("bcdef"))
    expected = summed(by_hand(domain, potentials), domain, "bcdef")
    torch.testing.assert_close(table, expected)
    assert 0 < max(seen) <= 100 < table.numel()


def test_unlikely_cells_are_not_lost_between_cliques() -> None:
    """A separator's code that is almost impossible in one clique and certain in the other."""
    domain = Domain(("a", "b", "c"), (2, 2, 2))
    strong = torch.tensor([[0.0, 0.0], [-900.0, -899.0]], dtype=torch.float64)
    potentials: Potentials = {("a", "b"): strong.T.contiguous(), ("b", "c"): -strong}
    check_all_marginals(domain, potentials)
    (share,) = GraphicalModel(domain, potentials).marginals([("b",)])
    assert 0.1 < share[1] < 0.9
