"""Ensembles that are fitted once: how long, how closely, and what is released."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from scrim.spec.mechanism import GenerativeNetwork, RelaxedProjection
from synth.domain import Domain
from synth.measurements import Measurement
from synth.mechanisms import one_shot
from synth.mechanisms.one_shot import fit
from synth.mechanisms.projection import FitTargets, one_way_shares
from synth.models.generators import Generator, GeneratorNetwork, SoftmaxTable
from synth.planning.mixture import members_of
from synth.planning.one_shot import EXCESS, STEPS, steps_for
from synth.queries import Marginal, QuerySet

CPU = torch.device("cpu")
DOMAIN = Domain(("a", "b", "c", "d"), (2, 3, 4, 5))
ROWS = 10_000
PAIRS = [Marginal.of((x, y), DOMAIN) for x in "abcd" for y in "abcd" if x < y]

NEW: dict[str, tuple[float, Callable[[int], Generator]]] = {
    "network": (
        0.003,
        lambda seed: GeneratorNetwork(DOMAIN, 100, seed, latent=16, hidden=[32, 32]),
    ),
    "table": (0.1, lambda seed: SoftmaxTable(DOMAIN, 100, seed)),
}


def true_joint() -> NDArray[np.float64]:
    """Shares of every cell, with dependence between all columns."""
    random = np.random.default_rng(7)
    kinds = [[random.dirichlet(np.ones(size)) for size in DOMAIN.sizes] for _ in range(4)]
    joints = [np.einsum("i,j,k,l->ijkl", *kind) for kind in kinds]
    return np.asarray(np.mean(joints, axis=0), dtype=np.float64)


def measure(sigma: float, seed: int = 1) -> list[Measurement]:
    """All pairs, with seeded noise: nothing here is private."""
    joint, random = true_joint() * ROWS, np.random.default_rng(seed)
    made = []
    for pair in PAIRS:
        others = tuple(i for i, name in enumerate(DOMAIN.names) if name not in pair.attributes)
        counts = joint.sum(axis=others).ravel()
        made.append(Measurement(pair, counts + random.normal(0, sigma, counts.size), sigma))
    return made


def fitted(kind: str, measurements: list[Measurement], seed: int = 0) -> Generator:
    rate, new = NEW[kind]
    generator = new(seed)
    generator.start(one_way_shares(measurements, DOMAIN))
    fit(generator, FitTargets.of(measurements, ROWS, CPU), rate=rate, limit=3000)
    return generator


def mean_error(generator: Generator) -> float:
    """Mean absolute error over all cells of all pairs, as a fraction of the rows."""
    truth = np.concatenate([m.values for m in measure(0.0)]) / ROWS
    answers = QuerySet(PAIRS).on_product(generator.released()).numpy()
    return float(np.abs(answers - truth).mean())


@pytest.mark.parametrize("kind", NEW)
def test_the_error_falls_with_the_noise(kind: str) -> None:
    errors = [mean_error(fitted(kind, measure(sigma))) for sigma in (100.0, 10.0, 1.0)]
    assert errors[0] > 1.5 * errors[1] > 1.5**2 * errors[2]


@pytest.mark.parametrize("kind", NEW)
def test_members_from_different_starts_differ(kind: str) -> None:
    """Otherwise averaging them would change nothing."""
    measurements = measure(30.0)
    one, other = (
        QuerySet(PAIRS).on_product(fitted(kind, measurements, seed).released()) for seed in (0, 1)
    )
    assert (one - other).abs().max().item() > 1e-5


def test_a_fit_stops_where_the_truth_would() -> None:
    measurements = measure(100.0)
    targets = FitTargets.of(measurements, ROWS, CPU)
    generator = fitted("table", measurements)
    with torch.no_grad():
        residuals = (targets.answers(generator.fitted()) - targets.values) / targets.noise
    assert 0.4 < residuals.square().mean().item() < 1.0


def test_steps_grow_with_what_stands_out_from_the_noise() -> None:
    assert steps_for(-50.0, 3000) == steps_for(EXCESS, 3000) == STEPS
    assert steps_for(10 * EXCESS, 3000) == pytest.approx(STEPS * 10**0.31, abs=1)
    assert steps_for(1e12, 3000) == 3000


@pytest.mark.parametrize(("kind", "times"), [("network", 2.5), ("table", 1.0)])
def test_a_long_fit_of_a_network_takes_larger_steps(
    kind: str, times: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Seen(Exception):
        """The first step has its size."""

    def see(optimiser: torch.optim.Optimizer, rate: float) -> None:
        raise Seen(rate)

    monkeypatch.setattr(one_shot, "steps_for", lambda excess, limit: 2500)
    monkeypatch.setattr(one_shot, "_set_rate", see)
    with pytest.raises(Seen) as seen:
        fitted(kind, measure(1.0))
    assert seen.value.args == (pytest.approx(NEW[kind][0] * times),)


def test_fewer_members_where_few_or_many_counts_are_fitted() -> None:
    network = GenerativeNetwork(name="generative_network")
    members = {1999: 1, 2000: 2, 4999: 2, 5000: 4, 100_000: 4, 100_001: 2}
    assert {counts: members_of(network, counts) for counts in members} == members
    table = RelaxedProjection(name="relaxed_projection", members=7)
    assert members_of(table, 10**6) == 7
