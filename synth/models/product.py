"""A mixture of product distributions: what generator networks and relaxed projections put out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from synth.domain import Domain
from synth.models.base import Answers
from synth.queries import QuerySet


@dataclass(frozen=True)
class ProductMixture:
    """Components of equal weight; in each, the attributes are independent.

    `probabilities` has one row per component and one column per code of every attribute, the
    attributes side by side in the domain's order. Single precision is enough: the mean over
    components rounds to about 1e-8, far below the noise of any measurement.
    """

    kind: ClassVar[str] = "product_mixture"

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

    def answer(self, queries: QuerySet) -> Answers:
        """Answers as fractions. Their error depends on what was not measured, so none is stated."""
        with torch.no_grad():
            return Answers(queries.on_product(self).double().numpy())

    def sample(self, rows: int, rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
        """Draw rows so that every component and every code in it gets its share, to within one row.

        Components get rows by systematic sampling. Within an attribute one systematic pass goes over
        all components, and the codes are then shuffled inside each component: the attributes stay
        independent there, and the one-way shares have almost no sampling error.
        """
        components = len(self.probabilities)
        ends = np.floor((np.arange(1, components + 1) * rows + rng.random()) / components)
        ends = np.minimum(ends.astype(np.int64), rows)
        ends[-1] = rows
        sizes = np.diff(ends, prepend=0)
        component = np.repeat(np.arange(components), sizes)
        codes = {}
        for name, block in self._blocks.items():
            expected = block.double().numpy() * sizes[:, None]
            expected *= (sizes / np.maximum(expected.sum(1), 1e-300))[:, None]
            points = np.arange(rows) + rng.random()
            cells = np.searchsorted(np.cumsum(expected.ravel()), points, side="right")
            ordered = np.minimum(cells, expected.size - 1) % block.shape[1]
            codes[name] = ordered[np.lexsort((rng.random(rows), component))]
        shuffled = rng.permutation(rows)
        return {name: column[shuffled] for name, column in codes.items()}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The probabilities."""
        return {
            "names": np.array(self.domain.names),
            "sizes": np.array(self.domain.sizes),
            "probabilities": self.probabilities.numpy(),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], rows: int) -> Self:
        """The mixture that `to_arrays` described."""
        domain = Domain(tuple(arrays["names"].tolist()), tuple(arrays["sizes"].tolist()))
        return cls(domain, torch.from_numpy(arrays["probabilities"]))
