"""Two distributions in a fixed proportion: a mixture of products, and weighted rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from scrim.spec.schema import Schema
from synth.models.base import Answers
from synth.models.product import ProductMixture
from synth.models.support import Support
from synth.queries import QuerySet


@dataclass(frozen=True)
class Blend:
    """A share of the rows follows the support, and the others the mixture of products.

    Only the support's columns are drawn; it has every column that was measured.
    """

    kind: ClassVar[str] = "blend"

    mixture: ProductMixture
    support: Support
    share: float
    """The share of the support."""

    def answer(self, queries: QuerySet) -> Answers:
        """Answers as fractions. Their error depends on what was not measured, so none is stated."""
        mixture, support = self.mixture.answer(queries), self.support.answer(queries)
        return Answers((1 - self.share) * mixture.values + self.share * support.values)

    def sample(self, rows: int, rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
        """Draw each part's rows, in random order."""
        of_support = round(self.share * rows)
        parts = ((self.mixture, rows - of_support), (self.support, of_support))
        drawn = [part.sample(count, rng) for part, count in parts if count]
        order = rng.permutation(rows)
        names = self.support.domain.names
        return {name: np.concatenate([part[name] for part in drawn])[order] for name in names}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of both parts, and the share."""
        parts = {"mixture": self.mixture.to_arrays(), "support": self.support.to_arrays()}
        named = {
            f"{part}.{name}": a for part, arrays in parts.items() for name, a in arrays.items()
        }
        return {**named, "share": np.array(self.share)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], *, rows: int, schema: Schema) -> Self:
        """Rebuild the blend from the output of `to_arrays`."""
        parts: dict[str, dict[str, NDArray[Any]]] = {"mixture": {}, "support": {}}
        for name, array in arrays.items():
            part, _, field = name.partition(".")
            if field:
                parts[part][field] = array
        return cls(
            ProductMixture.from_arrays(parts["mixture"], rows=rows, schema=schema),
            Support.from_arrays(parts["support"], rows=rows, schema=schema),
            float(arrays["share"]),
        )
