"""Entropy projection: the closest distribution, in relative entropy, that meets some cells.

Paper: Liu, Vietri, Wu (2021), Iterative Methods for Private Synthetic Data, algorithm 2.
"""

from collections.abc import Sequence

import torch

from synth.models.base import WeightedModel

SMALLEST_SHARE = 1e-12
"""Keeps targets away from 0, from which a multiplicative update never returns."""


def project_onto(
    model: WeightedModel, attributes: Sequence[str], values: torch.Tensor, margin: torch.Tensor
) -> bool:
    """Project on the cells that are farther than `margin` from their values; tell if any was."""
    answers = model.marginal(attributes).flatten()
    nearest = answers.clamp(values - margin, values + margin)
    # No factor moves a cell without weight, which a support has where it has no row.
    violated = (nearest != answers) & (answers > 0)
    if not violated.any():
        return False
    model.reweight(attributes, answers, projection_factor(answers, nearest, violated))
    return True


def projection_factor(
    answers: torch.Tensor, values: torch.Tensor, violated: torch.Tensor
) -> torch.Tensor:
    """What each cell is multiplied by so that the violated cells meet their values."""
    wanted = values.clamp(SMALLEST_SHARE, 1 - SMALLEST_SHARE).where(violated, values.new_zeros(()))
    mass, rest = wanted.sum(), answers.where(~violated, answers.new_zeros(())).sum()
    # Noisy values may add up to more than everything; the other cells keep a little.
    wanted = wanted * ((1 - SMALLEST_SHARE) / mass).clamp(max=1.0)
    others = (1 - wanted.sum()) / rest.clamp(min=SMALLEST_SHARE)
    return (wanted / answers.clamp(min=SMALLEST_SHARE**2)).where(violated, others)
