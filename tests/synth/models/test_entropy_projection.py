"""Entropy projection of noisy marginals: what exceeds the noise is followed, the rest is not."""

import numpy as np
import torch

from synth.domain import Domain
from synth.models.entropy_projection import project_beyond_noise
from synth.models.histogram import Histogram

DOMAIN = Domain(("a", "b"), (50, 2))


def projected(
    values: torch.Tensor, noise: torch.Tensor, *, steps: int = 1
) -> tuple[Histogram, bool]:
    model = Histogram.uniform(DOMAIN)
    moved = [project_beyond_noise(model, ["a"], values, noise, tolerance=1.0) for _ in range(steps)]
    assert abs(model.weights.sum().item() - 1) < 1e-9
    return model, moved[0]


def test_a_large_error_of_one_cell_is_noise_if_the_marginal_is_not_off() -> None:
    values = torch.full((50,), 0.02, dtype=torch.float64)
    values[3] += 0.03
    model, moved = projected(values, torch.full_like(values, 0.01))
    assert not moved
    np.testing.assert_array_equal(model.weights, Histogram.uniform(DOMAIN).weights)


def test_exact_values_are_met() -> None:
    values = torch.linspace(1, 50, 50, dtype=torch.float64)
    values /= values.sum()
    model, moved = projected(values, torch.zeros_like(values), steps=2)
    assert moved
    np.testing.assert_allclose(model.marginal(["a"]).flatten(), values, atol=1e-6)


def test_cells_that_were_not_measured_share_the_rest() -> None:
    values, noise = torch.zeros(50, dtype=torch.float64), torch.full((50,), torch.inf).double()
    values[7], noise[7] = 0.51, 0.0
    model, _ = projected(values, noise)
    found = model.marginal(["a"]).flatten()
    assert abs(found[7].item() - 0.51) < 1e-6
    np.testing.assert_allclose(np.delete(found.numpy(), 7), 0.01, rtol=1e-6)


def test_negative_noisy_values_leave_a_distribution() -> None:
    values = torch.full((50,), -0.1, dtype=torch.float64)
    values[0] = 0.9
    model, moved = projected(values, torch.full_like(values, 0.01), steps=20)
    assert moved
    assert (model.weights >= 0).all() and model.weights.isfinite().all()
