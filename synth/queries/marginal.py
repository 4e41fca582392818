"""k-way marginals: every cell of the cross table of k attributes."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import TYPE_CHECKING

import torch

from synth.domain import Domain
from synth.queries.group import QueryGroup, Sensitivity
from synth.queries.marginal_counter import MarginalCounter
from synth.queries.marginal_products import products_of
from synth.spec.population import Protection
from synth.spec.schema import CategoricalColumn, Schema

if TYPE_CHECKING:
    from synth.models.histogram import Histogram
    from synth.models.product import ProductMixture
    from synth.models.support import Support


@dataclass(frozen=True)
class Marginal(QueryGroup):
    """All cells of the cross table of some attributes, the last attribute varying fastest."""

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
        """The attributes' names, quoted where they contain a comma."""
        return ",".join(f'"{a}"' if "," in a or '"' in a else a for a in self.attributes)

    def sensitivity(self, protection: Protection) -> Sensitivity:
        """docs/privacy.md, section 3: a row sits in one cell, and replacing it moves two cells."""
        rows = protection.rows
        moved = 2 if protection.relation == "replace_one" else 1
        if self.size == 1:
            # The only cell counts all rows: replacing a unit moves it by what the row count moves.
            only = protection.row_count_sensitivity
            return Sensitivity(l1=only, l2_squared=only**2, linf=only)
        return Sensitivity(l1=moved * rows, l2_squared=moved * rows**2, linf=rows)

    def labels(self, schema: Schema) -> Iterator[str]:
        """Such as `sex=F & age=[20, 30)`."""
        parts = [
            [f"{name}={text}" for text in _code_labels(schema, name)] for name in self.attributes
        ]
        return (" & ".join(cell) for cell in product(*parts))

    @classmethod
    def counter(cls, groups: Sequence["Marginal"]) -> MarginalCounter:
        """Count all of them in one pass over the rows."""
        return MarginalCounter(groups)

    @classmethod
    def on_histogram(
        cls, groups: Sequence["Marginal"], histogram: "Histogram"
    ) -> list[torch.Tensor]:
        """Sum the weights over the other attributes; those it does not have are uniform."""
        return [_on_weights(group, histogram) for group in groups]

    @classmethod
    def on_support(cls, groups: Sequence["Marginal"], support: "Support") -> list[torch.Tensor]:
        """Add each row's weight to its cell; attributes that the rows lack are uniform."""
        return [_on_weights(group, support) for group in groups]

    def matching(self, index: int, support: "Support") -> torch.Tensor:
        """The rows in one cell."""
        return (support.cells(self.attributes) == index).nonzero().flatten()

    @classmethod
    def on_product(cls, groups: Sequence["Marginal"], mixture: "ProductMixture") -> torch.Tensor:
        """A few matrix products for the whole workload."""
        return products_of(tuple(groups), mixture.domain).answers(mixture)


def _code_labels(schema: Schema, name: str) -> list[str]:
    column = schema.attribute(name)
    if isinstance(column, CategoricalColumn):
        labels = list(column.labels)
    else:
        edges = [f"{edge:.15g}" for edge in column.edges]
        labels = [f"[{a}, {b})" for a, b in pairwise(edges)]
        labels[-1] = labels[-1][:-1] + "]"
    return [*labels, "missing"] if column.nullable else labels


def _on_weights(group: Marginal, model: "Histogram | Support") -> torch.Tensor:
    known = [name in model.domain.size_of for name in group.attributes]
    table = model.marginal(group.attributes)
    if all(known):
        return table.flatten()
    shape = [size if k else 1 for size, k in zip(group.sizes, known, strict=True)]
    repeated = group.size // math.prod(shape)
    return (table.reshape(shape) / repeated).expand(group.sizes).flatten()
