"""Rows of declared values: the release of a search or a relaxation over rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from scrim.spec.schema import Schema
from synth.models.base import Answers
from synth.models.sampling import draw_systematically
from synth.queries import QuerySet
from synth.table import Chunk, Table, with_blank_identifiers


@dataclass(frozen=True)
class Rows:
    """Rows of equal weight in the declared types. They depend on private data only through noisy counts."""

    kind: ClassVar[str] = "rows"

    schema: Schema
    chunk: Chunk
    """Stored values of every column; identifiers are blank."""

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(next(iter(self.chunk.values())))

    def answer(self, queries: QuerySet) -> Answers:
        """Answers as fractions. Their error depends on what was not measured, so none is stated."""
        return Answers(queries.count(Table(self.schema, [self.chunk])) / self.size)

    def sample(self, rows: int, rng: np.random.Generator) -> Chunk:
        """Draw exactly `rows` rows in random order, each as often as the others to within one."""
        drawn = draw_systematically(np.ones(self.size), rows, rng)
        return {name: values[drawn] for name, values in self.chunk.items()}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """One array for each column."""
        return {f"column_{i}": self.chunk[c.name] for i, c in enumerate(self.schema.attributes)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], *, rows: int, schema: Schema) -> Self:
        """Rebuild the rows from the output of `to_arrays`."""
        columns = enumerate(schema.attributes)
        attributes = {column.name: arrays[f"column_{i}"] for i, column in columns}
        return cls(schema, with_blank_identifiers(schema, attributes))
