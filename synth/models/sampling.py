"""Drawing rows from weights with the least possible sampling error."""

import numpy as np
from numpy.typing import NDArray


def draw_systematically(
    weights: NDArray[np.float64], draws: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw positions in proportion to their weights, each within one of its share, in random order."""
    cumulative = np.cumsum(weights)
    points = (np.arange(draws) + rng.random()) * (cumulative[-1] / draws)
    drawn = np.minimum(np.searchsorted(cumulative, points, side="right"), len(cumulative) - 1)
    return rng.permutation(drawn)
