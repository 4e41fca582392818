"""Conjunctions of conditions on single columns, which make up ranges and prefixes."""

import random
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from scrim.spec.columns import LabelledColumn
from scrim.spec.population import Protection
from scrim.spec.schema import Labelled, Numeric, Schema
from scrim.spec.sensitivity import Sensitivity, of_predicates
from scrim.spec.workload.block import Block

MAX_PREDICATES = 1_000_000
"""Largest number of queries in one item of prefixes, ranges or halfspaces."""
MISSING_SHARE = 0.1
"""Share of random conditions on a nullable numeric column that ask for missing values."""


@dataclass(frozen=True, slots=True)
class HasCode:
    """A category, by its code; missing has its own code."""

    column: str
    code: int


@dataclass(frozen=True, slots=True)
class InInterval:
    """A number in [low, high), or in [low, high] if high is the column's upper bound."""

    column: str
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class IsMissing:
    """A missing number, or another code apart from the numbers of its column."""

    column: str
    kind: int = 0
    """Position among the column's codes that are apart."""


Condition = HasCode | InInterval | IsMissing
Conjunction = tuple[Condition, ...]


@dataclass(frozen=True)
class PredicateBlock(Block):
    """Predicates of any form; a row may satisfy all of them."""

    is_whole: ClassVar[bool] = False

    name: str
    """Identifies the block: it includes everything that determines the queries."""
    count: int

    def size(self, schema: Schema) -> int:
        """Number of predicates."""
        return self.count

    def sensitivity(self, schema: Schema, protection: Protection) -> Sensitivity:
        """The sensitivity: a row may satisfy all predicates."""
        return of_predicates(self.count, protection)


class ConjunctionSource:
    """An item that lists its conjunctions."""

    @abstractmethod
    def conjunctions(self, schema: Schema) -> Sequence[Conjunction]:
        """The conditions of every query, in order."""

    @abstractmethod
    def unaligned(self, schema: Schema) -> str | None:
        """Why some interval may not consist of bins, without listing random intervals; None if all do."""


@dataclass(frozen=True)
class ConjunctionBlock(PredicateBlock):
    """Conjunctions, listed only when needed, because there may be many."""

    item: ConjunctionSource = field(compare=False)

    def unaligned(self, schema: Schema) -> str | None:
        """Why some interval does not consist of bins; None if all do."""
        return self.item.unaligned(schema)


def code_draws(column: Labelled) -> Callable[[random.Random], HasCode]:
    """Return a function that draws a category, or missing, uniformly."""
    size = column.size  # computed once: there may be many categories and many draws
    return lambda rng: HasCode(column.name, int(rng.random() * size))


def draw_missing(column: Numeric, rng: random.Random) -> IsMissing | None:
    """A random condition on a numeric column that asks for missing values; None if it asks for numbers."""
    if not column.apart or rng.random() >= MISSING_SHARE:
        return None
    # One kind needs no draw.
    kind = int(rng.random() * len(column.apart)) if len(column.apart) > 1 else 0
    return IsMissing(column.name, kind)


def choose(names: Sequence[str], count: int, rng: random.Random) -> list[str]:
    """Draw distinct names. Only `random()` has the same sequence in every version of Python."""
    left = list(names)
    return [left.pop(int(rng.random() * len(left))) for _ in range(count)]


def numeric_columns(schema: Schema) -> dict[str, Numeric]:
    """The columns of numbers by name."""
    return {c.name: c for c in schema.attributes if not isinstance(c, LabelledColumn)}


def columns_of(conjunctions: Sequence[Conjunction], schema: Schema) -> tuple[str, ...]:
    """All columns with a condition, in the schema's order."""
    used = {condition.column for conjunction in conjunctions for condition in conjunction}
    return tuple(column.name for column in schema.attributes if column.name in used)
