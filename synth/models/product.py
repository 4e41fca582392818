"""A mixture of product distributions: the output of generator networks and relaxed projections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from scrim.spec.schema import Schema
from synth.domain import Domain
from synth.models.base import Answers
from synth.models.refinement import refine
from synth.models.sampling import draw_systematically
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
        """The columns of some attributes side by side.

        They are concatenated from shared blocks, because each separate slice would have a gradient as
        large as all probabilities.
        """
        return torch.cat([self._blocks[name] for name in names], dim=1)

    def joint(self, names: Sequence[str]) -> torch.Tensor:
        """Probability of every combination of some attributes in each component."""
        joint = self.probabilities.new_ones((len(self.probabilities), 1))
        for name in names:
            joint = (joint[:, :, None] * self._blocks[name][:, None, :]).flatten(1)
        return joint

    def with_components(self, domain: Domain, probabilities: torch.Tensor) -> "ProductMixture":
        """Return a mixture of other components."""
        return ProductMixture(domain, probabilities)

    def answer(self, queries: QuerySet) -> Answers:
        """Answers as fractions. Their error depends on what was not measured, so none is stated."""
        with torch.no_grad():
            return Answers(queries.on_product(self).double().numpy())

    def sample(self, rows: int, rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
        """Draw rows whose one-, two- and three-way tables are close to the mixture's.

        First, every component and every code in it gets its share to within one row, and the codes are
        assigned to the component's rows at random, since attributes are independent there. Refinement
        then removes most of the sampling error in the tables of all rows.
        """
        component = draw_systematically(np.ones(len(self.probabilities)), rows, rng)
        codes = np.stack([self._draw(name, component, rng) for name in self.domain.names])
        refine(codes, component, mixture=self, rng=rng)
        return dict(zip(self.domain.names, codes, strict=True))

    def codes_at(
        self, name: str, component: NDArray[np.int64], points: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """The codes at which the components' cumulative shares pass the given points in [0, 1]."""
        size = self.domain.size_of[name]
        found = np.searchsorted(self._cumulative[name], component + points, side="right")
        codes: NDArray[np.int64] = np.minimum(found - component * size, size - 1)
        return codes

    def _draw(
        self, name: str, component: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Draw codes of an attribute systematically in each component and shuffle them."""
        sizes = np.bincount(component, minlength=len(self.probabilities))
        ordered = np.repeat(np.arange(len(sizes)), sizes)
        place = np.arange(len(ordered)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        # Each component has its own starting point: with a common one, all components would round up the
        # same codes, and the total shares would be off by one row per component.
        points = (place + rng.random(len(sizes))[ordered]) / sizes[ordered]
        codes = np.empty_like(component)
        codes[np.argsort(component + rng.random(len(component)))] = self.codes_at(
            name, ordered, points
        )
        return codes

    @cached_property
    def _cumulative(self) -> dict[str, NDArray[np.float64]]:
        """The cumulative shares of each attribute's codes; those of component k are in [k, k + 1]."""
        shares = {name: block.double().numpy().cumsum(1) for name, block in self._blocks.items()}
        first = np.arange(len(self.probabilities))[:, None]
        return {name: (first + block / block[:, -1:]).ravel() for name, block in shares.items()}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The probabilities."""
        return {
            "names": np.array(self.domain.names),
            "sizes": np.array(self.domain.sizes),
            "probabilities": self.probabilities.numpy(),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], *, rows: int, schema: Schema) -> Self:
        """Rebuild the mixture from the output of `to_arrays`."""
        domain = Domain(tuple(arrays["names"].tolist()), tuple(arrays["sizes"].tolist()))
        return cls(domain, torch.from_numpy(arrays["probabilities"]))
