"""The forms of distributions that queries read. Models implement them; queries do not import models.

Each protocol has exactly the attributes and methods that the query classes use.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import torch

from scrim.spec.schema import Schema
from scrim.spec.workload.hierarchical import Level
from synth.domain import Domain
from synth.queries.reading import Reading


class Cells(Protocol):
    """A distribution over discrete cells that returns the cross table of any of its attributes."""

    @property
    def domain(self) -> Domain:
        """The attributes of the model."""

    def marginals(self, sets: Sequence[Sequence[str]]) -> Iterator[torch.Tensor]:
        """The cross table of each set, without attributes the model lacks, in the domain's order."""


class WeightedRows(Protocol):
    """Coded rows with weights."""

    @property
    def domain(self) -> Domain:
        """The attributes of the rows."""

    @property
    def codes(self) -> Mapping[str, torch.Tensor]:
        """The code of each row, for each attribute."""

    @property
    def weights(self) -> torch.Tensor:
        """The weight of each row."""

    def cells(self, attributes: Sequence[str]) -> torch.Tensor:
        """The cell of each row in the cross table of the attributes, without those the rows lack."""

    def marginal(self, attributes: Sequence[str]) -> torch.Tensor:
        """The cross table of the attributes, without those the rows lack, in the domain's order."""

    def recoded(self, domain: Domain, codes: Mapping[str, torch.Tensor]) -> "WeightedRows":
        """Return rows with the same weights and other codes."""


class Products(Protocol):
    """Components of equal weight; in each, the attributes are independent."""

    @property
    def domain(self) -> Domain:
        """The attributes and their numbers of codes."""

    @property
    def probabilities(self) -> torch.Tensor:
        """One row for each component, one column for each code of every attribute."""

    def columns(self, names: Sequence[str]) -> torch.Tensor:
        """The columns of some attributes side by side."""

    def joint(self, names: Sequence[str]) -> torch.Tensor:
        """The probability of every combination of some attributes in each component."""

    def with_components(self, domain: Domain, probabilities: torch.Tensor) -> "Products":
        """Return a mixture of other components."""


class SoftRows(Protocol):
    """Relaxed rows: categories are probabilities, and thresholds are sigmoids."""

    @property
    def schema(self) -> Schema:
        """The declared columns."""

    @property
    def size(self) -> int:
        """Number of rows."""

    @property
    def temperature(self) -> float:
        """The inverse temperature of the sigmoids."""

    @property
    def coordinates(self) -> torch.Tensor:
        """The coordinates that halfspaces weigh (synth/queries/coordinates.py); one column per row."""

    @property
    def points(self) -> torch.Tensor:
        """The coordinates, then the probabilities of kinds of missing values where there are several."""

    def between(self, columns: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
        """The soft indicators that numbers are present and between two places; one line per interval."""

    def mixture(self, readings: Sequence[Reading]) -> Products:
        """Each row as a product distribution over the codes of some readings."""


class GroupKinds(Protocol):
    """A distribution over kinds of groups."""

    def sizes(self) -> torch.Tensor:
        """The share of groups of each size."""

    def table(
        self, level: Level, *, of_groups: Sequence[str], of_individuals: Sequence[str]
    ) -> torch.Tensor:
        """The count per group of every combination of the columns' values, at one level."""
