"""Generators represent mixtures of products, and start near the given shares."""

import pytest
import torch

from synth.domain import Domain
from synth.models import generators
from synth.models.generators import ClippedTable, Generator, GeneratorNetwork, SoftmaxTable

DOMAIN = Domain(("a", "b", "c"), (2, 1, 4))
COMPONENTS = 2000
SHARES = torch.tensor([0.3, 0.7, 1.0, 0.1, 0.2, 0.3, 0.4])


def new_network() -> GeneratorNetwork:
    return GeneratorNetwork(DOMAIN, COMPONENTS, latent=32, hidden=[64])


def new_generator(kind: str) -> Generator:
    made: dict[str, Generator] = {
        "softmax": SoftmaxTable(DOMAIN, COMPONENTS),
        "clipped": ClippedTable(DOMAIN, COMPONENTS),
        "network": new_network(),
    }
    return made[kind]


def check_distributions(probabilities: torch.Tensor) -> None:
    assert probabilities.shape == (COMPONENTS, sum(DOMAIN.sizes))
    assert probabilities.min() >= 0
    for block in torch.split(probabilities, list(DOMAIN.sizes), dim=1):
        torch.testing.assert_close(block.sum(dim=1), torch.ones(COMPONENTS))


@pytest.mark.parametrize("short", [0, 100])
@pytest.mark.parametrize("kind", ["softmax", "network"])
def test_every_component_is_a_distribution_of_each_attribute(
    kind: str, short: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generators, "SHORT", short)
    generator = new_generator(kind)
    check_distributions(generator().detach())
    check_distributions(generator.released().probabilities)
    assert not generator.released().probabilities.requires_grad


def test_normalising_side_by_side_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    generator, logits = new_generator("softmax"), torch.randn(5, sum(DOMAIN.sizes))
    beside = generator.softmax(logits)
    monkeypatch.setattr(generators, "SHORT", 0)
    torch.testing.assert_close(generator.softmax(logits), beside)


@pytest.mark.parametrize("kind", ["softmax", "clipped", "network"])
def test_components_differ_before_anything_is_fitted(kind: str) -> None:
    assert new_generator(kind)().detach()[:, [0, 3]].std(dim=0).min() > 0.01


@pytest.mark.parametrize("kind", ["softmax", "clipped", "network"])
def test_starts_near_the_shares(kind: str) -> None:
    generator = new_generator(kind)
    generator.start(SHARES)
    mean = generator.released().probabilities.mean(dim=0)
    assert (mean - SHARES).abs().max() < 0.07


@pytest.mark.parametrize("kind", ["softmax", "clipped", "network"])
def test_codes_without_a_share_stay_as_they_are(kind: str) -> None:
    generator = new_generator(kind)
    before = generator().detach().clone()
    shares = SHARES.clone()
    shares[:2] = torch.nan
    generator.start(shares)
    after = generator().detach()
    torch.testing.assert_close(after[:, :2], before[:, :2])
    assert not torch.allclose(after[:, 3:], before[:, 3:])


def test_a_clipped_table_stays_in_bounds_and_is_released_as_a_distribution() -> None:
    table = ClippedTable(DOMAIN, COMPONENTS)
    with torch.no_grad():
        table.values.mul_(10).sub_(3)
        table.values[0] = -5  # nothing of it is left
    table.constrain()
    assert table().min() == 0 and table().max() == 1
    check_distributions(table.released().probabilities)
    torch.testing.assert_close(table.released().probabilities[0, 3:], torch.full((4,), 0.25))


def test_networks_are_equal_and_leave_the_global_generator_alone() -> None:
    before = torch.get_rng_state()
    first = new_network()
    torch.rand(3)
    moved = torch.get_rng_state()
    second = new_network()
    assert torch.equal(torch.get_rng_state(), moved)
    torch.set_rng_state(before)
    assert first.state_dict().keys() == second.state_dict().keys()
    for name, weights in first.state_dict().items():
        assert torch.equal(weights, second.state_dict()[name])
