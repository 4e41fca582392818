"""Relaxed rows: thresholds are soft, so gradients exist.

Paper: Liu, Tang, Vietri, Wu (2023), appendix B.3: the indicator of x < t is relaxed to a sigmoid of
(t - x) times an inverse temperature. It approaches the indicator as the inverse temperature grows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from scrim.spec.columns import LabelledColumn
from scrim.spec.schema import Numeric, Schema
from synth.domain import Domain
from synth.models.product import ProductMixture
from synth.queries.coordinates import edge_places
from synth.queries.reading import Reading


@dataclass(frozen=True)
class RelaxedRows:
    """Rows whose categories are probabilities and whose numbers are places between their bounds."""

    schema: Schema
    categories: dict[str, torch.Tensor]
    """For each categorical column, the probabilities of its codes, one line per row."""
    places: dict[str, torch.Tensor]
    """For each numeric column, the place of each row, from 0 at the lower bound to 1 at the upper one."""
    missing: dict[str, torch.Tensor]
    """For each numeric column with missing values, the probability of each kind, one line per row."""
    temperature: float
    """The inverse temperature of the sigmoids."""

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(next(iter({**self.categories, **self.places}.values())))

    def mixture(self, readings: Sequence[Reading]) -> ProductMixture:
        """Each row as a product distribution over the codes of some readings."""
        domain = Domain(tuple(r.name for r in readings), tuple(r.size for r in readings))
        return ProductMixture(domain, torch.cat([self._codes(r) for r in readings], dim=1))

    def below(self, column: str, thresholds: NDArray[np.float64]) -> torch.Tensor:
        """The soft indicator that each row's number is present and below each threshold; one line per row."""
        position = self._numeric.index(column)
        edges = edge_places(self._column(column).line, thresholds)
        limits = torch.as_tensor(edges, dtype=self._places.dtype, device=self._places.device)
        return self._present[position, :, None] * torch.sigmoid(
            self.temperature * (limits - self._places[position, :, None])
        )

    def between(self, columns: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
        """The soft indicator that each row's number is present and between two places; one line per interval.

        Columns are positions among the numeric ones.
        """
        places = self._places.index_select(0, columns)
        inside = torch.sigmoid(self.temperature * (high[:, None] - places))
        if low.isfinite().any():
            inside = inside - torch.sigmoid(self.temperature * (low[:, None] - places))
        return inside * self._present.index_select(0, columns) if self.missing else inside

    @cached_property
    def coordinates(self) -> torch.Tensor:
        """The coordinates that halfspaces weigh (synth/queries/coordinates.py); one column per row."""
        blocks = []
        for column in self.schema.attributes:
            if isinstance(column, LabelledColumn):
                blocks.append(self.categories[column.name].T)
            else:
                position = self._numeric.index(column.name)
                present = self._present[position]
                blocks.append(torch.stack([self._places[position] * present, 1 - present]))
        return torch.cat(blocks)

    @cached_property
    def points(self) -> torch.Tensor:
        """The coordinates, then the probabilities of kinds of missing values where there are several."""
        several = [kinds.T for kinds in self.missing.values() if kinds.shape[1] > 1]
        return torch.cat([self.coordinates, *several])

    def _codes(self, reading: Reading) -> torch.Tensor:
        if reading.edges is None:
            return self.categories[reading.column]
        below = self.below(reading.column, np.array(reading.edges[1:-1]))
        present = self._present[self._numeric.index(reading.column), :, None]
        cells = torch.diff(torch.cat([torch.zeros_like(present), below, present], dim=1))
        missing = self.missing.get(reading.column)
        return cells if missing is None else torch.cat([cells, missing], dim=1)

    def _column(self, name: str) -> Numeric:
        column = self.schema.attribute(name)
        assert not isinstance(column, LabelledColumn)
        return column

    @cached_property
    def _numeric(self) -> list[str]:
        columns = self.schema.attributes
        return [column.name for column in columns if not isinstance(column, LabelledColumn)]

    @cached_property
    def _places(self) -> torch.Tensor:
        return torch.stack([self.places[name] for name in self._numeric])

    @cached_property
    def _present(self) -> torch.Tensor:
        """The probability that each number is not missing."""
        everywhere = torch.ones_like(self._places[0])
        return torch.stack(
            [
                1 - self.missing[name].sum(dim=1) if name in self.missing else everywhere
                for name in self._numeric
            ]
        )
