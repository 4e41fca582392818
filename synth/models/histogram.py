"""One weight for every cell of the domain: exact, but as large as the domain."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from scrim.spec.schema import Schema
from synth.domain import Domain
from synth.models.base import Answers
from synth.models.sampling import draw_systematically
from synth.queries import QuerySet


@dataclass
class Histogram:
    """A distribution as a dense tensor with one axis per attribute.

    Attributes of a query that the histogram lacks are independent and uniform, because they were not
    measured. Weights are doubles: thousands of multiplicative updates would drift in single precision,
    and the tensor is small by construction.
    """

    kind: ClassVar[str] = "histogram"

    domain: Domain
    weights: torch.Tensor

    @classmethod
    def uniform(cls, domain: Domain) -> Self:
        """The uniform distribution."""
        return cls(domain, torch.full(domain.sizes, 1 / domain.cells, dtype=torch.float64))

    def answer(self, queries: QuerySet) -> Answers:
        """Answers as fractions. Their error depends on what was not measured, so none is stated."""
        return Answers(queries.on_histogram(self).numpy())

    def marginals(self, sets: Sequence[Sequence[str]]) -> Iterator[torch.Tensor]:
        """The cross table of each set, without attributes the histogram lacks."""
        return map(self.marginal, sets)

    def marginal(self, attributes: Sequence[str]) -> torch.Tensor:
        """The cross table of the attributes, without those the histogram lacks, in the domain's order."""
        summed = [i for i, name in enumerate(self.domain.names) if name not in attributes]
        return self.weights.sum(summed) if summed else self.weights

    def reweight(
        self, attributes: Sequence[str], answers: torch.Tensor, factors: torch.Tensor
    ) -> None:
        """Multiply the cells of a marginal by factors and normalise, in one pass over the weights.

        `answers` are the marginal's current values, from which the new total is computed.
        """
        shape = [
            size if name in attributes else 1
            for name, size in zip(self.domain.names, self.domain.sizes, strict=True)
        ]
        self.weights *= (factors / (answers * factors).sum()).reshape(shape)

    def sample(self, rows: int, rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
        """Draw rows by systematic sampling, which keeps every cell within one row of its share."""
        cells = draw_systematically(self.weights.numpy().ravel(), rows, rng)
        return dict(zip(self.domain.names, np.unravel_index(cells, self.domain.sizes), strict=True))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The weights, in single precision: their noise is far larger than the rounding."""
        return {
            "names": np.array(self.domain.names),
            "weights": self.weights.numpy().astype(np.float32),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], *, rows: int, schema: Schema) -> Self:
        """Rebuild the histogram from the output of `to_arrays`."""
        weights = torch.from_numpy(arrays["weights"].astype(np.float64))
        domain = Domain(tuple(arrays["names"].tolist()), tuple(weights.shape))
        return cls(domain, weights / weights.sum())
