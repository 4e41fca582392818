"""k-way marginals: every cell of the cross table of k attributes."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from scrim.spec.sensitivity import Sensitivity, of_partition
from synth.domain import Domain
from synth.queries.block import QueryBlock
from synth.queries.features import CellFeatures
from synth.queries.marginal_counter import MarginalCounter
from synth.queries.marginal_products import products_of
from synth.queries.readable import Cells, Products, SoftRows, WeightedRows
from synth.queries.reading import Reading


@dataclass(frozen=True)
class Marginal(QueryBlock):
    """All cells of the cross table of some attributes, the last attribute varying fastest."""

    reads: ClassVar[Literal["codes", "numbers"]] = "codes"

    attributes: tuple[str, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, attributes: Sequence[str], domain: Domain) -> "Marginal":
        """The marginal of those attributes, in the domain's order."""
        projected = domain.project(attributes)
        return cls(projected.names, projected.sizes)

    @property
    def size(self) -> int:
        """Number of cells."""
        return math.prod(self.sizes)

    @property
    def name(self) -> str:
        """The attributes' names, quoted if they contain a comma."""
        return joined(self.attributes)

    def sensitivity(self, protection: Protection) -> Sensitivity:
        """The sensitivity: a row is in one cell."""
        return of_partition(self.size, protection)

    def labels(self, schema: Schema) -> Iterator[str]:
        """Such as `sex=F & age=[20, 30)`."""
        parts = [
            [f"{name}={text}" for text in code_labels(schema, name)] for name in self.attributes
        ]
        return (" & ".join(cell) for cell in product(*parts))

    def shares(self, name: str, counts: NDArray[Any]) -> NDArray[Any] | None:
        """The counts of one attribute, summed over the others."""
        if name not in self.attributes:
            return None
        return summed(counts.reshape(self.sizes), self.attributes.index(name))

    @classmethod
    def counter(cls, blocks: Sequence["Marginal"]) -> MarginalCounter:
        """Count all blocks in one pass over the rows."""
        return MarginalCounter(blocks)

    @classmethod
    def on_histogram(cls, blocks: Sequence["Marginal"], model: Cells) -> list[torch.Tensor]:
        """The model's own cross tables; attributes that it lacks are uniform."""
        tables = model.marginals([block.attributes for block in blocks])
        return [_flat(g, table, model.domain) for g, table in zip(blocks, tables, strict=True)]

    @classmethod
    def on_support(cls, blocks: Sequence["Marginal"], support: WeightedRows) -> list[torch.Tensor]:
        """Add each row's weight to its cell; attributes that the rows lack are uniform."""
        return [_flat(g, support.marginal(g.attributes), support.domain) for g in blocks]

    def matching(self, index: int, support: WeightedRows) -> torch.Tensor:
        """The rows in one cell."""
        return (support.cells(self.attributes) == index).nonzero().flatten()

    @classmethod
    def on_product(cls, blocks: Sequence["Marginal"], mixture: Products) -> torch.Tensor:
        """Answer all blocks with a few matrix products."""
        return products_of(tuple(blocks), mixture.domain).answers(mixture)

    @classmethod
    def on_relaxed(cls, blocks: Sequence["Marginal"], rows: SoftRows) -> torch.Tensor:
        """Answer from each row's product distribution over the soft codes of its columns."""
        names = dict.fromkeys(name for block in blocks for name in block.attributes)
        readings = [Reading.of(rows.schema.attribute(name)) for name in names]
        return cls.on_product(blocks, rows.mixture(readings))

    def features(self, schema: Schema) -> CellFeatures:
        """One table."""
        axes = tuple(Reading.of(schema.attribute(name)) for name in self.attributes)
        return CellFeatures([axes])


def summed(table: NDArray[Any], kept: int) -> NDArray[Any]:
    """Sum a table over all axes but one."""
    others = tuple(axis for axis in range(table.ndim) if axis != kept)
    return np.asarray(table.sum(axis=others))


def joined(names: Sequence[str]) -> str:
    """Join names with commas; names that contain a comma are quoted."""
    return ",".join(f'"{name}"' if "," in name or '"' in name else name for name in names)


def code_labels(schema: Schema, name: str) -> list[str]:
    """A readable name of each code of a column: its categories or bins, and missing."""
    return schema.attribute(name).code_labels


def _flat(block: Marginal, table: torch.Tensor, domain: Domain) -> torch.Tensor:
    """All cells of a marginal, from the table without attributes that a model lacks."""
    known = [name in domain.size_of for name in block.attributes]
    if all(known):
        return table.flatten()
    shape = [size if k else 1 for size, k in zip(block.sizes, known, strict=True)]
    repeated = block.size // math.prod(shape)
    return (table.reshape(shape) / repeated).expand(block.sizes).flatten()
