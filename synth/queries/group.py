"""The contract of a query class.

A group is a set of counting queries that are selected and measured together, such as all cells of
one marginal. A class answers many of its groups at once, because they share work.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray

from synth.spec.population import Protection
from synth.spec.schema import Schema

if TYPE_CHECKING:
    from synth.models.histogram import Histogram
    from synth.models.product import ProductMixture
    from synth.models.support import Support

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Sensitivity:
    """How far one privacy unit can move the counts of a group. Whole numbers, so exact."""

    l1: int
    l2_squared: int
    linf: int


class Counter(Protocol):
    """Counts over any number of rows, chunk by chunk."""

    def add(self, codes: Mapping[str, NDArray[Any]]) -> None:
        """Count the rows of one chunk."""

    def totals(self) -> list[Counts]:
        """The counts of each group."""


class QueryGroup(ABC):
    """Counting queries that are selected and measured together."""

    attributes: tuple[str, ...]

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of queries."""

    @property
    @abstractmethod
    def name(self) -> str:
        """A name that identifies the group within its schema."""

    @abstractmethod
    def sensitivity(self, protection: Protection) -> Sensitivity:
        """How far one privacy unit can move the group's counts."""

    @abstractmethod
    def labels(self, schema: Schema) -> Iterator[str]:
        """A readable name of each query, in order."""

    @classmethod
    @abstractmethod
    def counter(cls, groups: Sequence[Self]) -> Counter:
        """Something that counts these groups in one pass over the rows."""

    @classmethod
    @abstractmethod
    def on_histogram(cls, groups: Sequence[Self], histogram: "Histogram") -> list[torch.Tensor]:
        """Answers, as fractions, on one weight per cell of the domain."""

    @classmethod
    @abstractmethod
    def on_support(cls, groups: Sequence[Self], support: "Support") -> list[torch.Tensor]:
        """Answers, as fractions, on weighted rows; rows of equal weight are the special case."""

    @abstractmethod
    def matching(self, index: int, support: "Support") -> torch.Tensor:
        """Positions of the weighted rows that satisfy one of the queries."""

    @classmethod
    @abstractmethod
    def on_product(cls, groups: Sequence[Self], mixture: "ProductMixture") -> torch.Tensor:
        """Answers of all groups, one after another, differentiably, on a mixture of products."""


@dataclass(frozen=True)
class Single:
    """One query of a group, to be measured alone (as the papers do)."""

    group: QueryGroup
    index: int

    @property
    def name(self) -> str:
        """The group's name and the query's position in it."""
        return f"{self.group.name}[{self.index}]"

    @property
    def size(self) -> int:
        """One query."""
        return 1

    def sensitivity(self, protection: Protection) -> Sensitivity:
        """A single predicate moves by at most one for each row of the unit, under either relation."""
        rows = protection.rows
        return Sensitivity(l1=rows, l2_squared=rows**2, linf=rows)
