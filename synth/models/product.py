"""A mixture of product distributions: what generator networks and relaxed projections put out."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch

from synth.domain import Domain


@dataclass(frozen=True)
class ProductMixture:
    """Components of equal weight; in each, the attributes are independent.

    `probabilities` has one row per component and one column per code of every attribute, the
    attributes side by side in the domain's order.
    """

    domain: Domain
    probabilities: torch.Tensor

    @cached_property
    def _blocks(self) -> dict[str, torch.Tensor]:
        blocks = torch.split(self.probabilities, list(self.domain.sizes), dim=1)
        return dict(zip(self.domain.names, blocks, strict=True))

    def columns(self, names: Sequence[str]) -> torch.Tensor:
        """The columns of some attributes side by side."""
        first = self.domain.names.index(names[0])
        if self.domain.names[first : first + len(names)] == tuple(names):
            start = sum(self.domain.sizes[:first])
            width = sum(self.domain.sizes[first : first + len(names)])
            return self.probabilities.narrow(1, start, width)  # neighbours need no copy
        return torch.cat([self._blocks[name] for name in names], dim=1)

    def joint(self, names: Sequence[str]) -> torch.Tensor:
        """Probability of every combination of some attributes in each component, over K.

        The division by the number of components turns a later sum over them into their mean.
        """
        components = len(self.probabilities)
        joint = self.probabilities.new_full((components, 1), 1 / components)
        for name in names:
            joint = (joint[:, :, None] * self._blocks[name][:, None, :]).flatten(1)
        return joint
