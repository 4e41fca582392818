"""A mixture of products over whole groups: size, columns, and an individual at every place."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from scrim.spec.schema import Schema
from scrim.spec.two_level import LinkedSchema
from scrim.spec.workload.hierarchical import as_linked
from synth.domain import SIZE, at_place
from synth.models.base import Answers
from synth.models.product import ProductMixture
from synth.queries import QuerySet
from synth.queries.hierarchical import refuse_rows


@dataclass(frozen=True)
class Households:
    """Groups whose size, columns and individuals are independent within each component."""

    kind: ClassVar[str] = "households"

    schema: LinkedSchema
    mixture: ProductMixture
    """Mixture over the domain of whole groups."""

    def answer(self, queries: QuerySet) -> Answers:
        """Answers per group. Their error depends on what was not measured, so none is stated."""
        refuse_rows(queries.blocks)
        return self.mixture.answer(queries)

    def sample(self, rows: int, rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
        """Draw `rows` groups: the size and columns of each, and the columns of each individual.

        Individuals are drawn for every place; those at places beyond the group's size are discarded.
        """
        drawn = self.mixture.sample(rows, rng)
        places = range(self.schema.max_group_size)
        is_taken = np.arange(len(places)) <= drawn[SIZE][:, None]
        codes = {SIZE: drawn[SIZE]}
        for name in self.schema.group_attributes:
            codes[name] = drawn[name]
        for name in self.schema.individual_attributes:
            each = np.stack([drawn[at_place(name, place)] for place in places], axis=1)
            codes[name] = each[is_taken]
        return codes

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of the mixture."""
        return self.mixture.to_arrays()

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], *, rows: int, schema: Schema) -> Self:
        """Rebuild the model from the output of `to_arrays`."""
        mixture = ProductMixture.from_arrays(arrays, rows=rows, schema=schema)
        return cls(as_linked(schema), mixture)
