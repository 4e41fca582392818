"""Weighted rows: a distribution on a few points of a large domain."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from scrim.spec.schema import Schema
from synth.domain import Domain
from synth.models.base import Answers
from synth.models.sampling import draw_systematically
from synth.planning.memory import CACHED_BYTES
from synth.queries import QuerySet
from synth.table import Table


@dataclass
class Support:
    """Coded rows with weights that sum to one. Plain rows have equal weights.

    Attributes of a query that the rows lack are independent and uniform, as in a histogram.
    """

    kind: ClassVar[str] = "support"

    domain: Domain
    codes: Mapping[str, torch.Tensor]
    weights: torch.Tensor
    _cells: dict[tuple[str, ...], torch.Tensor] = field(
        default_factory=dict, repr=False, compare=False
    )

    @classmethod
    def of(cls, table: Table) -> Self:
        """The distribution of a public table: each distinct row once, weighted by its frequency."""
        domain = Domain.of(table.schema)
        chunks = list(table.codes(domain.names))
        columns = {name: np.concatenate([chunk[name] for chunk in chunks]) for name in domain.names}
        return cls.of_rows(domain, columns)

    @classmethod
    def of_rows(cls, domain: Domain, columns: Mapping[str, NDArray[Any]]) -> Self:
        """The distribution of coded rows, each distinct one once."""
        rows = len(columns[domain.names[0]])
        return cls._merged(domain, columns, np.full(rows, 1 / rows))

    def project(self, attributes: Sequence[str]) -> "Support":
        """The distribution of some attributes; rows that are equal in them are merged."""
        kept = self.domain.project(attributes)
        columns = {name: self.codes[name].numpy() for name in kept.names}
        return self._merged(kept, columns, self.weights.numpy())

    @classmethod
    def _merged(
        cls, domain: Domain, columns: Mapping[str, NDArray[Any]], weights: NDArray[np.float64]
    ) -> Self:
        keys = _row_keys(columns, domain)
        _, first, row = np.unique(keys, return_index=True, return_inverse=True)
        return cls(
            domain,
            {name: torch.from_numpy(columns[name][first].astype(np.int32)) for name in columns},
            torch.from_numpy(np.bincount(row, weights)),
        )

    def recoded(self, domain: Domain, codes: Mapping[str, torch.Tensor]) -> "Support":
        """Return rows with the same weights and other codes."""
        return Support(domain, codes, self.weights)

    def answer(self, queries: QuerySet) -> Answers:
        """Answers as fractions. Their error depends on what was not measured, so none is stated."""
        return Answers(queries.on_support(self).numpy())

    def marginal(self, attributes: Sequence[str]) -> torch.Tensor:
        """The cross table of the attributes, without those the rows lack, in the domain's order."""
        kept = self.domain.project(attributes)
        table = torch.zeros(kept.cells, dtype=self.weights.dtype)
        return table.index_add_(0, self.cells(attributes), self.weights).reshape(kept.sizes)

    def reweight(
        self, attributes: Sequence[str], answers: torch.Tensor, factors: torch.Tensor
    ) -> None:
        """Multiply the cells of a marginal by factors and normalise.

        `answers` are the marginal's current values, from which the new total is computed.
        """
        scaled = factors / (answers * factors).sum()
        self.weights *= scaled[self.cells(attributes)]

    def cells(self, attributes: Sequence[str]) -> torch.Tensor:
        """The cell of each row in the cross table of the attributes, without those the rows lack."""
        kept = self.domain.project(attributes)
        found = self._cells.get(kept.names)
        if found is None:
            found = self._cells_of(kept)
            # The first entries stay: in a loop over more than fit, replacing them would never give a hit.
            if (len(self._cells) + 1) * found.nbytes <= CACHED_BYTES:
                self._cells[kept.names] = found
        return found

    def sample(self, rows: int, rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
        """Draw rows by systematic sampling, which keeps every row within one of its share."""
        drawn = draw_systematically(self.weights.numpy(), rows, rng)
        return {name: column.numpy()[drawn].astype(np.int64) for name, column in self.codes.items()}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Rows and weights; weights in single precision: their noise is far larger than the rounding."""
        return {
            "names": np.array(self.domain.names),
            "sizes": np.array(self.domain.sizes),
            "codes": np.stack([self.codes[name].numpy() for name in self.domain.names]),
            "weights": self.weights.numpy().astype(np.float32),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], *, rows: int, schema: Schema) -> Self:
        """Rebuild the support from the output of `to_arrays`."""
        domain = Domain(tuple(arrays["names"].tolist()), tuple(arrays["sizes"].tolist()))
        codes = zip(domain.names, torch.from_numpy(arrays["codes"]), strict=True)
        weights = torch.from_numpy(arrays["weights"].astype(np.float64))
        return cls(domain, dict(codes), weights / weights.sum())

    def _cells_of(self, kept: Domain) -> torch.Tensor:
        index = torch.zeros(len(self.weights), dtype=torch.int32)
        for name, size in zip(kept.names, kept.sizes, strict=True):
            index = index * size + self.codes[name]
        return index


def _row_keys(columns: Mapping[str, NDArray[Any]], domain: Domain) -> NDArray[np.int64]:
    """Return a number for each row; two rows have the same number exactly if they are equal."""
    keys = np.zeros(len(columns[domain.names[0]]), dtype=np.int64)
    span = 1
    for name, size in zip(domain.names, domain.sizes, strict=True):
        if span * size > 2**62:
            # Renumber if the next factor would overflow: there are no more keys than rows.
            keys = np.unique(keys, return_inverse=True)[1]
            span = len(keys)
        keys = keys * size + columns[name]
        span *= size
    return keys
