"""Weighted rows: a distribution on a few points of a domain too large to list."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch


@dataclass
class Support:
    """Coded rows with weights that sum to one. Plain rows are the case of equal weights."""

    codes: Mapping[str, torch.Tensor]
    weights: torch.Tensor

    def tally(self, attributes: Sequence[str], sizes: Sequence[int]) -> torch.Tensor:
        """Weight in each cell of the cross table of some attributes."""
        index = torch.zeros(len(self.weights), dtype=torch.int64)
        for name, size in zip(attributes, sizes, strict=True):
            index = index * size + self.codes[name]
        return torch.zeros(math.prod(sizes), dtype=self.weights.dtype).index_add(
            0, index, self.weights
        )
