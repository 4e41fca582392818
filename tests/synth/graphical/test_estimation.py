"""Estimation: the best fit over every cell of the whole distribution, from any start."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.domain import Domain
from synth.graphical.descent import Point, minimise
from synth.graphical.estimation import NOTHING, Evidence, Fit, add, entropy_weight, estimate
from synth.graphical.junction_tree import JunctionTree
from synth.graphical.propagation import propagate
from synth.planning.triangulation import Attributes
from tests.synth.graphical.models import by_hand, domains, sets_of, summed

Fitted = dict[Attributes, torch.Tensor]


def potentials_of(domain: Domain, evidence: list[Evidence], **options: Any) -> Fitted:
    """What is fitted, for each marginal that was measured."""
    tree = JunctionTree.of([each.attributes for each in evidence], domain)
    settings: dict[str, Any] = {"steps": 2000, "close": 1e-7} | options
    fitted = estimate(tree, evidence, **settings)
    return add(settings.get("base", {}), fitted.potentials)


def fit(domain: Domain, evidence: list[Evidence], **options: Any) -> Fitted:
    """The fitted marginals of what was measured."""
    tree = JunctionTree.of([each.attributes for each in evidence], domain)
    potentials = potentials_of(domain, evidence, **options)
    return propagate(tree, potentials).inside([each.attributes for each in evidence])


def slopes(domain: Domain, evidence: list[Evidence]) -> torch.Tensor:
    """How sum (m - y)^2 / (2 s^2) - w entropy changes with each cell of the whole fitted distribution."""
    whole = by_hand(domain, potentials_of(domain, evidence))
    weight = entropy_weight(torch.cat([each.noise.flatten() for each in evidence]))
    slope = weight * whole.log()
    for each in evidence:
        residuals = (summed(whole, domain, each.attributes) - each.values) / each.noise.square()
        slope = slope + spread(residuals, each.attributes, domain)
    return slope / weight


def spread(table: torch.Tensor, names: Attributes, domain: Domain) -> torch.Tensor:
    """A table of some attributes, repeated over the others."""
    shape = [domain.size_of[name] if name in names else 1 for name in domain.names]
    return table.reshape(shape).expand(domain.sizes)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Domain, list[Evidence]]:
    domain = draw(domains().filter(lambda domain: 1 < domain.cells <= 48))
    sets = draw(sets_of(domain).filter(bool))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    whole = torch.from_numpy(rng.dirichlet(np.full(domain.cells, 0.3))).reshape(domain.sizes)
    evidence = []
    for names in sets:
        true = summed(whole, domain, names)
        scale = draw(st.sampled_from([0.01, 0.03, 0.1]))
        values = true + scale * torch.from_numpy(rng.normal(size=true.shape))
        evidence.append(Evidence(names, values, torch.full_like(values, scale)))
    return domain, evidence


@settings(max_examples=8)
@given(problems())
def test_no_cell_could_be_changed_to_fit_better(problem: tuple[Domain, list[Evidence]]) -> None:
    """The objective is convex: where its slope is the same in every cell, it is smallest."""
    domain, evidence = problem
    found = slopes(domain, evidence)
    torch.testing.assert_close(found, found.mean().expand_as(found), rtol=0, atol=1e-3)


@settings(max_examples=8)
@given(problems(), st.integers(0, 100))
def test_the_start_does_not_decide_where_it_ends(
    problem: tuple[Domain, list[Evidence]], seed: int
) -> None:
    domain, evidence = problem
    chance = torch.Generator().manual_seed(seed)
    start = {
        each.attributes: torch.randn(each.values.shape, generator=chance, dtype=torch.float64)
        for each in evidence[::2]
    }
    cold, warm = fit(domain, evidence), fit(domain, evidence, start=Fit(start))
    for names in cold:
        torch.testing.assert_close(cold[names], warm[names], rtol=0, atol=1e-6)


@settings(max_examples=8)
@given(problems())
def test_a_fit_that_goes_on_after_another_ends_where_a_new_one_does(
    problem: tuple[Domain, list[Evidence]],
) -> None:
    """Marginal by marginal, each fit starting from the last one and from its steps."""
    domain, evidence = problem
    warm = NOTHING
    for known in range(1, len(evidence) + 1):
        tree = JunctionTree.of([each.attributes for each in evidence[:known]], domain)
        warm = estimate(tree, evidence[:known], start=warm, steps=2000, close=1e-7)
    fitted = propagate(tree, warm.potentials).inside([each.attributes for each in evidence])
    for names, table in fit(domain, evidence).items():
        torch.testing.assert_close(table, fitted[names], rtol=0, atol=1e-6)


def test_what_was_not_measured_follows_the_base() -> None:
    domain = Domain(("a", "b"), (2, 3))
    share = torch.tensor([0.3, 0.7], dtype=torch.float64)
    base = {("b",): torch.tensor([0.1, 0.2, 0.7], dtype=torch.float64).log()}
    evidence = [Evidence(("a",), share, torch.full_like(share, 1e-6))]
    tree = JunctionTree.of([("a",), ("b",)], domain)
    potentials = potentials_of(domain, evidence, base=base)
    fitted = propagate(tree, potentials).inside([("a",), ("b",)])
    torch.testing.assert_close(fitted[("a",)], share, rtol=0, atol=1e-5)
    torch.testing.assert_close(fitted[("b",)], base[("b",)].exp())


def test_noise_moves_a_rare_cell_less_far_from_the_base_than_from_uniform() -> None:
    """A cell whose measurement agrees with the base stays there, however rare it is."""
    domain = Domain(("a",), (4,))
    share = torch.tensor([0.001, 0.099, 0.3, 0.6], dtype=torch.float64)
    evidence = [Evidence(("a",), share, torch.full_like(share, 0.001))]
    torch.testing.assert_close(fit(domain, evidence, base={("a",): share.log()})[("a",)], share)
    assert fit(domain, evidence)[("a",)][0] > 2 * share[0]


def test_the_less_noisy_measurement_counts_more() -> None:
    domain = Domain(("a", "b"), (2, 2))
    table = torch.tensor([[0.4, 0.2], [0.3, 0.1]], dtype=torch.float64)  # the share of a=0 is 0.6
    evidence = [
        Evidence(("a", "b"), table, torch.full_like(table, 0.001)),
        Evidence(("a",), table.sum(0), torch.full((2,), 0.01, dtype=torch.float64)),  # 0.7
    ]
    # Two cells of variance 1e-6 give 0.6, one of variance 1e-4 gives 0.7.
    fitted = fit(domain, evidence, close=0.001)
    assert fitted[("a",)][0].item() == pytest.approx(0.602, abs=0.001)


def test_cells_that_were_not_measured_pull_at_nothing() -> None:
    domain = Domain(("a",), (4,))
    values = torch.tensor([0.7, 123.0, -5.0, 0.0], dtype=torch.float64)
    noise = torch.tensor([0.001, torch.inf, torch.inf, torch.inf], dtype=torch.float64)
    fitted = fit(domain, [Evidence(("a",), values, noise)])[("a",)]
    assert fitted[0].item() == pytest.approx(0.7, abs=0.002)
    torch.testing.assert_close(fitted[1:], torch.full_like(fitted[1:], fitted[1].item()))


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e6])
def test_noise_of_any_size_leaves_a_distribution(scale: float) -> None:
    domain = Domain(("a", "b"), (3, 4))
    chance = torch.Generator().manual_seed(3)
    values = 1 / 12 + scale * torch.randn(3, 4, generator=chance, dtype=torch.float64)
    fitted = fit(domain, [Evidence(("a", "b"), values, torch.full_like(values, scale))], close=0.1)
    table = fitted["a", "b"]
    assert table.isfinite().all() and (table >= 0).all()
    assert table.sum().item() == pytest.approx(1.0)


def test_descent_finds_the_minimum_of_a_bent_valley() -> None:
    """Curvatures that differ by a factor of 10^6, and a diagonal that captures only part of them."""
    chance = torch.Generator().manual_seed(5)
    turn = torch.linalg.qr(torch.randn(12, 12, generator=chance, dtype=torch.float64))[0]
    matrix = turn @ torch.diag(torch.logspace(-3, 3, 12, dtype=torch.float64)) @ turn.T
    wanted = torch.randn(12, generator=chance, dtype=torch.float64)

    def evaluate(place: torch.Tensor) -> Point:
        off = place - wanted
        value = (off @ matrix @ off / 2 + off.pow(4).sum()).item()
        return Point(place, value, matrix @ off + 4 * off**3, matrix.diagonal())

    def is_close(point: Point) -> bool:
        return bool(point.gradient.abs().max() < 1e-8)

    origin = torch.zeros_like(wanted)
    found, past = minimise(evaluate, origin, is_close=is_close, steps=500)
    assert is_close(found)
    stopped, _ = minimise(evaluate, origin, is_close=is_close, steps=2)
    assert found.value < stopped.value < evaluate(origin).value
    # The last steps help a descent that starts nearby, and wrong ones do no harm.
    near = found.place + 0.001
    cold, _ = minimise(evaluate, near, is_close=is_close, steps=5)
    warm, _ = minimise(evaluate, near, is_close=is_close, steps=5, past=past)
    assert warm.value < cold.value
    wrong = [(moved, 1e-9 * moved) for moved, _ in past]
    assert is_close(minimise(evaluate, origin, is_close=is_close, steps=500, past=wrong)[0])
