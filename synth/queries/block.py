"""The interface of a query class.

A block is a set of counting queries that are selected and measured together, such as all cells of
one marginal. A class answers many blocks at once, because they share work.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NoReturn, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray

from scrim.spec.errors import SpecError
from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from scrim.spec.sensitivity import Sensitivity
from synth.queries.features import Features
from synth.queries.readable import Cells, GroupKinds, Products, SoftRows, WeightedRows

Counts = NDArray[np.int64]


class Counter(Protocol):
    """Counts over any number of rows, chunk by chunk."""

    def add(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Count the rows of one chunk, in the form that the query class reads."""

    def totals(self) -> list[Counts]:
        """The counts of each block."""


class QueryBlock(ABC):
    """Counting queries that belong together.

    Whether a row satisfies a query must depend on that row alone, to the last bit: not on the rest of its
    chunk, and not on an order of summation. The sensitivities rely on this.
    """

    reads: ClassVar[Literal["codes", "numbers"]]
    """Whether it counts discrete codes, or numbers as declared (categories as codes, missing as NaN)."""
    is_whole: ClassVar[bool] = True
    """Whether adaptive mechanisms select and measure all of it at once, or query by query."""

    attributes: tuple[str, ...]

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of queries."""

    @property
    @abstractmethod
    def name(self) -> str:
        """A name that identifies the block within its schema."""

    @abstractmethod
    def sensitivity(self, protection: Protection) -> Sensitivity:
        """How much one privacy unit can change the block's counts."""

    @abstractmethod
    def labels(self, schema: Schema) -> Iterator[str]:
        """A readable name of each query, in order."""

    @classmethod
    @abstractmethod
    def counter(cls, blocks: Sequence[Self]) -> Counter:
        """Return a counter that counts these blocks in one pass over the rows."""

    @classmethod
    def on_histogram(cls, blocks: Sequence[Self], model: Cells) -> list[torch.Tensor]:
        """Answers, as fractions, on a distribution over the cells of the domain, in any form."""
        _needs_numbers(blocks)

    @classmethod
    def on_support(cls, blocks: Sequence[Self], support: WeightedRows) -> list[torch.Tensor]:
        """Answers, as fractions, on weighted rows; plain rows have equal weights."""
        _needs_numbers(blocks)

    def matching(self, index: int, support: WeightedRows) -> torch.Tensor:
        """Positions of the weighted rows that satisfy one of the queries."""
        _needs_numbers([self])

    @classmethod
    def on_product(cls, blocks: Sequence[Self], mixture: Products) -> torch.Tensor:
        """Answers of all blocks, one after another, differentiably, on a mixture of products."""
        _needs_numbers(blocks)

    @classmethod
    def on_group_types(cls, blocks: Sequence[Self], types: GroupKinds) -> list[torch.Tensor]:
        """Answers, per group, on one weight for every kind of group."""
        raise TypeError(f"{blocks[0].name} is about rows, but this model has groups of individuals")

    @property
    def columns_read(self) -> tuple[str, ...]:
        """The columns of a table that it reads."""
        return self.attributes

    @property
    def whole(self) -> "QueryBlock | None":
        """The query that counts the denominator of its fractions; None if that is all rows."""
        return None

    def shares(self, name: str, counts: NDArray[Any]) -> NDArray[Any] | None:
        """The counts of one attribute's codes, derived from the block's counts; None if not possible."""
        return None

    def only(self, queries: Sequence[int]) -> "QueryBlock":
        """Return a block of some of its queries, if it is not selected as a whole."""
        raise TypeError(f"{self.name} is selected and measured as a whole")

    @classmethod
    @abstractmethod
    def on_relaxed(cls, blocks: Sequence[Self], rows: SoftRows) -> torch.Tensor:
        """Answers of all blocks, one after another, differentiably, on relaxed rows."""

    @abstractmethod
    def features(self, schema: Schema) -> Features:
        """The queries that a row satisfies, in a form that is fast to update when one cell changes."""


def _needs_numbers(blocks: Sequence[QueryBlock]) -> NoReturn:
    raise SpecError(f"{blocks[0].name} is about numbers, but this model has only their bins")


@dataclass(frozen=True)
class Single:
    """One query of a block, measured alone (as in the papers)."""

    block: QueryBlock
    index: int

    @property
    def name(self) -> str:
        """The block's name and the query's position in it."""
        return f"{self.block.name}[{self.index}]"

    @property
    def size(self) -> int:
        """One query."""
        return 1

    def sensitivity(self, protection: Protection) -> Sensitivity:
        """The largest sensitivity of any query of its block."""
        linf = self.block.sensitivity(protection).linf
        return Sensitivity(l1=linf, l2_squared=linf**2, linf=linf)
