"""What every released model can do."""

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
    """Of the answers as counts: less than the rows times the above, where their number is noisy."""


class Model(Protocol):
    """What a mechanism releases: a distribution that answers any query and draws rows."""

    kind: ClassVar[str]

    def answer(self, queries: QuerySet) -> Answers:
        """Answers to queries, asked or not, at no further cost."""

    def sample(self, rows: int, rng: np.random.Generator) -> Mapping[str, NDArray[Any]]:
        """Rows drawn from the model: codes, or stored values where it has them."""

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Everything the model consists of, as plain arrays."""

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], *, rows: int, schema: Schema) -> Self:
        """The model that `to_arrays` described."""


class WeightedModel(Model, Protocol):
    """A distribution as weights, one for each cell of the domain or for each row of a support."""

    weights: torch.Tensor

    def marginal(self, attributes: Sequence[str]) -> torch.Tensor:
        """The cross table of those attributes that the model has, in the domain's order."""

    def reweight(
        self, attributes: Sequence[str], answers: torch.Tensor, factors: torch.Tensor
    ) -> None:
        """Multiply the cells of a marginal, whose present values are given, and normalise."""
