"""Parts of marginals: the marginal of some columns, multiplied along each column by size I - J."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NoReturn

from numpy.typing import NDArray

from scrim.spec.errors import SpecError
from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from scrim.spec.sensitivity import Sensitivity, of_part, shifts_of_part
from scrim.spec.workload.parts import PartBlock
from synth.queries.block import Counts, QueryBlock
from synth.queries.marginal import Marginal, joined
from synth.queries.marginal_counter import MarginalCounter
from synth.queries.readable import SoftRows


@dataclass(frozen=True)
class MarginalPart(QueryBlock):
    """One part: whole numbers that can be negative, the last attribute varying fastest.

    A part is only measured. Models answer marginals, of which parts are linear combinations.
    """

    reads: ClassVar[Literal["codes", "numbers"]] = "codes"

    attributes: tuple[str, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, block: PartBlock, schema: Schema) -> "MarginalPart":
        """The part of a block, in a single table of rows."""
        if schema.is_linked:
            raise SpecError("parts of marginals are measured only in a single table of rows")
        return cls(block.attributes, block.sizes(schema))

    @property
    def size(self) -> int:
        """Number of cells."""
        return math.prod(self.sizes)

    @property
    def name(self) -> str:
        """The name: its attributes."""
        return f"part({joined(self.attributes)})"

    @property
    def shifts(self) -> dict[int, int]:
        """How far one row moves the values, as absolute values, and how many values move that far."""
        return shifts_of_part(self.sizes)

    def sensitivity(self, protection: Protection) -> Sensitivity:
        """The sensitivity under add/remove: a row moves every value."""
        return of_part(self.sizes, protection)

    def labels(self, schema: Schema) -> Iterator[str]:
        """Such as `part of sex=F & age=[20, 30)`."""
        cells = Marginal(self.attributes, self.sizes).labels(schema)
        return (f"part of {cell}" for cell in cells)

    @classmethod
    def counter(cls, blocks: Sequence["MarginalPart"]) -> "PartCounter":
        """Count the marginals of all blocks in one pass over the rows."""
        return PartCounter(blocks)

    @classmethod
    def on_relaxed(cls, blocks: Sequence["MarginalPart"], rows: SoftRows) -> NoReturn:
        """Raise TypeError: no model is fitted to parts."""
        raise TypeError(f"{blocks[0].name} is measured, and not answered by models of rows")

    def features(self, schema: Schema) -> NoReturn:
        """Raise TypeError: a row does not satisfy some of the values, it moves all of them."""
        raise TypeError(f"{self.name} is measured, and not answered by models of rows")


class PartCounter:
    """Counts marginals, chunk by chunk, and computes their parts at the end."""

    def __init__(self, parts: Sequence[MarginalPart]) -> None:
        self._parts = parts
        self._marginals = MarginalCounter(parts)

    def add(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Count the rows of one chunk."""
        self._marginals.add(columns)

    def totals(self) -> list[Counts]:
        """The values of each part, in exact integers."""
        counted = zip(self._parts, self._marginals.totals(), strict=True)
        return [part_of(counts.reshape(part.sizes)).ravel() for part, counts in counted]


def part_of(table: Counts) -> Counts:
    """The part of a marginal over all its columns, one axis each."""
    for axis, size in enumerate(table.shape):
        table = size * table - table.sum(axis=axis, keepdims=True)
    return table
