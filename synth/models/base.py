"""The interface of released models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray

from scrim.spec.schema import Schema
from synth.queries import QuerySet


@dataclass(frozen=True)
class Answers:
    """Answers as fractions of the rows, with standard errors where they are known."""

    values: NDArray[np.float64]
    standard_errors: NDArray[np.float64] | None = None
    count_standard_errors: NDArray[np.float64] | None = None
    """Standard errors of the answers as counts; not a multiple of the above if the row count is noisy."""


class Model(Protocol):
    """A released distribution: it answers any query and draws rows."""

    kind: ClassVar[str]

    def answer(self, queries: QuerySet) -> Answers:
        """Answer queries, of the workload or not, at no further cost."""

    def sample(self, rows: int, rng: np.random.Generator) -> Mapping[str, NDArray[Any]]:
        """Draw rows from the model: codes, or stored values if it has them."""

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the whole model as plain arrays."""

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], *, rows: int, schema: Schema) -> Self:
        """Rebuild the model from the output of `to_arrays`."""


class WeightedModel(Model, Protocol):
    """A distribution as weights, one for each cell of the domain or for each row of a support."""

    weights: torch.Tensor

    def marginal(self, attributes: Sequence[str]) -> torch.Tensor:
        """The cross table of the attributes, without those the model lacks, in the domain's order."""

    def reweight(
        self, attributes: Sequence[str], answers: torch.Tensor, factors: torch.Tensor
    ) -> None:
        """Multiply the cells of a marginal by factors and normalise; `answers` are its current values."""
