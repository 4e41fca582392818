"""Entropy projection: the closest distribution, in relative entropy, with given values of some cells.

Paper: Liu, Vietri, Wu (2021), Iterative Methods for Private Synthetic Data, algorithm 2.
"""

import math
from collections.abc import Sequence

import torch

from synth.models.base import WeightedModel

SMALLEST_SHARE = 1e-12
"""Keeps targets away from 0, from which a multiplicative update never returns."""

SMALLEST_NOISE = 1e-8
"""Noise, as a fraction of the rows, that is assumed for values without any."""
CAUTION = 0.1
"""Part of the estimated error that one step corrects. Marginals share errors, and smaller steps correct
them in all at once (docs/defaults.md)."""


def project_beyond_noise(
    model: WeightedModel,
    attributes: Sequence[str],
    values: torch.Tensor,
    noise: torch.Tensor,
    *,
    tolerance: float,
) -> bool:
    """Project a marginal towards its noisy values as far as they are not noise; return whether it moved.

    The excess of the squared residuals over the noise estimates how wrong the model is. It counts from
    `tolerance` of its own standard deviations on. The error of a cell is taken to have a variance in
    proportion to its share, so a residual is divided between error and noise as for normal
    distributions (empirical Bayes). The noise of a cell without a measurement is infinite.
    """
    answers = model.marginal(attributes).flatten()
    # Factors cannot change a cell of weight zero; a support has such cells where it has no row.
    known = noise.isfinite() & (answers > 0)
    residuals = (values - answers).where(known, 0.0)
    variances = noise.clamp(min=SMALLEST_NOISE).square().where(known, 0.0)
    excess = (residuals.square() - variances).sum()
    if excess <= tolerance * math.sqrt(2) * variances.square().sum().sqrt():
        return False
    errors = CAUTION * excess * answers / answers.where(known, 0.0).sum()
    corrected = answers + errors / (errors + variances) * residuals
    model.reweight(attributes, answers, projection_factor(answers, corrected, known))
    return True


def project_onto(
    model: WeightedModel, attributes: Sequence[str], values: torch.Tensor, margin: torch.Tensor
) -> bool:
    """Project onto the cells that are farther than `margin` from their values; return whether any was."""
    answers = model.marginal(attributes).flatten()
    nearest = answers.clamp(values - margin, values + margin)
    # Factors cannot change a cell of weight zero; a support has such cells where it has no row.
    violated = (nearest != answers) & (answers > 0)
    if not violated.any():
        return False
    model.reweight(attributes, answers, projection_factor(answers, nearest, violated))
    return True


def projection_factor(
    answers: torch.Tensor, values: torch.Tensor, violated: torch.Tensor
) -> torch.Tensor:
    """Return the factor of each cell with which the violated cells meet their values."""
    wanted = values.clamp(SMALLEST_SHARE, 1 - SMALLEST_SHARE).where(violated, values.new_zeros(()))
    mass, rest = wanted.sum(), answers.where(~violated, answers.new_zeros(())).sum()
    # Noisy values may sum to more than one; the other cells keep a small share.
    wanted = wanted * ((1 - SMALLEST_SHARE) / mass).clamp(max=1.0)
    others = (1 - wanted.sum()) / rest.clamp(min=SMALLEST_SHARE)
    return (wanted / answers.clamp(min=SMALLEST_SHARE**2)).where(violated, others)
