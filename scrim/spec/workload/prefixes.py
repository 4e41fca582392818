"""Random prefixes: rows with given categories whose numbers are below given thresholds.

Paper: Liu, Tang, Vietri, Wu (2023), definition 2.5 and equation 3.
"""

import random
from collections.abc import Callable
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from scrim.spec.base import Seed, Spec
from scrim.spec.columns import LabelledColumn
from scrim.spec.errors import SpecError
from scrim.spec.schema import Labelled, Numeric, Schema
from scrim.spec.workload.bins import cut_bins, has_bin_for_each_number
from scrim.spec.workload.block import Block
from scrim.spec.workload.conditions import (
    MAX_PREDICATES,
    Condition,
    Conjunction,
    ConjunctionBlock,
    ConjunctionSource,
    HasCode,
    InInterval,
    choose,
    code_draws,
    draw_missing,
    numeric_columns,
)
from scrim.spec.workload.marginals import MAX_ORDER


class Prefixes(Spec, ConjunctionSource):
    """Random prefixes: some categories, and some numbers below random thresholds.

    Columns and categories are drawn uniformly; thresholds are uniform between the declared bounds. For a
    nullable numeric column, a tenth of the conditions ask for missing values.
    """

    type: Literal["prefixes"]
    """Always `prefixes`."""
    count: Annotated[int, Field(ge=1, le=MAX_PREDICATES)]
    """Number of queries."""
    seed: Seed
    """Seed of the public random choice."""
    categorical: Annotated[int, Field(ge=0, le=MAX_ORDER)] = 1
    """Number of categorical columns in each query."""
    numeric: Annotated[int, Field(ge=1, le=MAX_ORDER)] = 2
    """Number of numeric columns in each query."""

    @model_validator(mode="after")
    def _not_too_many(self) -> Self:
        if self.categorical + self.numeric > MAX_ORDER:
            raise ValueError(f"categorical and numeric together must not exceed {MAX_ORDER}")
        return self

    def expand(self, schema: Schema) -> list[Block]:
        """One block of predicates."""
        categorical, numeric = _categorical_columns(schema), numeric_columns(schema)
        for kind, wanted, found in (
            ("categorical", self.categorical, len(categorical)),
            ("numeric", self.numeric, len(numeric)),
        ):
            if wanted > found:
                raise SpecError(
                    f"these prefixes need {wanted} {kind} columns and the schema has {found}; set "
                    f"`{kind}` to at most that"
                )
        used = {**(categorical if self.categorical else {}), **numeric}
        name = (
            f"prefixes({self.count}, seed {self.seed}, {self.categorical} categorical, "
            f"{self.numeric} numeric)"
        )
        attributes = tuple(c.name for c in schema.attributes if c.name in used)
        return [ConjunctionBlock(attributes, name, self.count, self)]

    def conjunctions(self, schema: Schema) -> list[Conjunction]:
        """The conditions of every query."""
        categorical = {n: code_draws(c) for n, c in _categorical_columns(schema).items()}
        numeric = numeric_columns(schema)
        rng = random.Random(self.seed)
        return [self._draw(categorical, numeric, rng) for _ in range(self.count)]

    def unaligned(self, schema: Schema) -> str | None:
        """Thresholds may be anywhere between the bounds, so every number needs its own bin."""
        for column in numeric_columns(schema).values():
            if not has_bin_for_each_number(column.line):
                return cut_bins(column)
        return None

    def _draw(
        self,
        categorical: dict[str, Callable[[random.Random], HasCode]],
        numeric: dict[str, Numeric],
        rng: random.Random,
    ) -> Conjunction:
        names = choose(list(categorical), self.categorical, rng)
        codes = [categorical[name](rng) for name in names]
        names = choose(list(numeric), self.numeric, rng)
        return (*codes, *(_below_threshold(numeric[name], rng) for name in names))


def _below_threshold(column: Numeric, rng: random.Random) -> Condition:
    if (missing := draw_missing(column, rng)) is not None:
        return missing
    line = column.line
    threshold = line.lower + rng.random() * (line.upper - line.lower)
    return InInterval(column.name, line.lower, threshold)


def _categorical_columns(schema: Schema) -> dict[str, Labelled]:
    return {c.name: c for c in schema.attributes if isinstance(c, LabelledColumn)}
