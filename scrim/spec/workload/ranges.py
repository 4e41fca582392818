"""Ranges: conjunctions of categories and intervals of numbers, random or named.

Paper: Liu, Tang, Vietri, Wu (2023), definition 2.3, with half-open intervals.
"""

import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from scrim.spec.base import Name, Seed, Spec
from scrim.spec.columns import LabelledColumn, OrdinalColumn
from scrim.spec.errors import SpecError
from scrim.spec.schema import Attribute, Numeric, Schema
from scrim.spec.workload.bins import BinStarts, cut_bins, has_known_edges
from scrim.spec.workload.block import Block
from scrim.spec.workload.conditions import (
    MAX_PREDICATES,
    Condition,
    Conjunction,
    ConjunctionBlock,
    ConjunctionSource,
    HasCode,
    InInterval,
    IsMissing,
    choose,
    code_draws,
    columns_of,
    draw_missing,
    numeric_columns,
)
from scrim.spec.workload.marginals import MAX_ORDER

MAX_NAMED = 10_000
"""Largest number of named queries in a workload."""

Interval = Annotated[list[float | str], Field(min_length=2, max_length=2)]
Wanted = Interval | str | None
RangeQuery = Annotated[dict[Name, Wanted], Field(min_length=1, max_length=MAX_ORDER)]


class Ranges(Spec, ConjunctionSource):
    """Counts of rows with given categories and numbers in given intervals.

    Either random queries (`k`, `count`, `seed`), whose intervals end at edges of bins if the column has
    bins; or named queries (`queries`). An interval [low, high] includes low but not high, unless high is
    the column's upper bound.
    """

    type: Literal["ranges"]
    """Always `ranges`."""
    k: Annotated[int, Field(ge=1, le=MAX_ORDER)] | None = None
    """Number of columns in each random query."""
    count: Annotated[int, Field(ge=1, le=MAX_PREDICATES)] | None = None
    """Number of random queries."""
    seed: Seed | None = None
    """Seed of the public random choice."""
    queries: (
        Annotated[list[RangeQuery], Field(min_length=1, max_length=MAX_NAMED, fail_fast=True)]
        | None
    ) = None
    """Named queries: for each column a category, an interval [low, high], or null for missing. Dates are
    in ISO 8601. The interval of an ordinal column names its first and last value, both included. If there
    are several kinds of missing values, name one."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        drawn = [self.k, self.count, self.seed]
        if (self.queries is None) == (None in drawn):
            raise ValueError("give either queries, or k, count and seed")
        if self.queries is not None and any(value is not None for value in drawn):
            raise ValueError("give either queries, or k, count and seed")
        return self

    def expand(self, schema: Schema) -> list[Block]:
        """One block of predicates."""
        if self.queries is not None:
            conjunctions = self.conjunctions(schema)
            named = json.dumps(self.queries, sort_keys=True).encode()
            name = f"ranges({len(conjunctions)}, {hashlib.sha256(named).hexdigest()[:16]})"
            return [
                ConjunctionBlock(columns_of(conjunctions, schema), name, len(conjunctions), self)
            ]
        assert self.k is not None and self.count is not None
        attributes = tuple(column.name for column in schema.attributes)
        if self.k > len(attributes):
            raise SpecError(
                f"{self.k}-way ranges need {self.k} columns; there are {len(attributes)}"
            )
        name = f"ranges({self.count}, seed {self.seed}, {self.k}-way)"
        return [ConjunctionBlock(attributes, name, self.count, self)]

    def conjunctions(self, schema: Schema) -> list[Conjunction]:
        """The conditions of every query."""
        if self.queries is not None:
            used = dict.fromkeys(name for query in self.queries for name in query)
            columns = {column.name: column for column in schema.attributes}
            readers = {name: _reader(name, columns) for name in used}
            return [
                tuple(readers[name](wanted) for name, wanted in query.items())
                for query in self.queries
            ]
        assert self.k is not None and self.count is not None
        rng = random.Random(self.seed)
        draws = {column.name: _draws(column) for column in schema.attributes}
        names = list(draws)
        return [
            tuple(draws[name](rng) for name in choose(names, self.k, rng))
            for _ in range(self.count)
        ]

    def unaligned(self, schema: Schema) -> str | None:
        """Why some interval does not consist of bins; random intervals always do if the column has bins."""
        columns = numeric_columns(schema)
        if self.queries is None:
            unbinned = [column for column in columns.values() if column.bins is None]
            return cut_bins(unbinned[0]) if unbinned else None
        intervals: dict[str, list[InInterval]] = defaultdict(list)
        for conjunction in self.conjunctions(schema):
            for condition in conjunction:
                if isinstance(condition, InInterval):
                    intervals[condition.column].append(condition)
        for name, of_column in intervals.items():
            column = columns[name]
            if not has_known_edges(column.line) or not _consist_of_bins(column, of_column):
                return cut_bins(column)
        return None


def _consist_of_bins(column: Numeric, intervals: list[InInterval]) -> bool:
    starts = BinStarts(column.line)
    return all(starts.span(interval.low, interval.high) is not None for interval in intervals)


def _draws(column: Attribute) -> Callable[[random.Random], Condition]:
    """Return a function that draws a condition on a column."""
    if isinstance(column, LabelledColumn):
        return code_draws(column)
    edges, line = None if column.bins is None else column.edges, column.line

    def draw(rng: random.Random) -> Condition:
        if (missing := draw_missing(column, rng)) is not None:
            return missing
        if edges is not None:
            first = int(rng.random() * (len(edges) - 1))
            last = first + 1 + int(rng.random() * (len(edges) - 1 - first))
            return InInterval(column.name, edges[first], edges[last])
        span = line.upper - line.lower
        low, high = sorted(line.lower + rng.random() * span for _ in range(2))
        return InInterval(column.name, low, high)

    return draw


def _reader(name: str, columns: Mapping[str, Attribute]) -> Callable[[Wanted], Condition]:
    """Return a function that reads named conditions on a column."""
    if name not in columns:
        raise SpecError(f"the schema has no column {name!r} to query; it has {', '.join(columns)}")
    column = columns[name]
    if not isinstance(column, LabelledColumn):
        return lambda wanted: _condition_on_number(column, wanted)
    code_of = column.code_of

    def read(wanted: Wanted) -> Condition:
        if wanted is None:
            kind = column.kinds.index(_kind_of(column, wanted))
            return HasCode(name, len(column.labels) + kind)
        if not isinstance(wanted, str) or wanted not in code_of:
            raise SpecError(f"column {name!r} is categorical: name one of its values")
        return HasCode(name, code_of[wanted])

    return read


def _condition_on_number(column: Numeric, wanted: Wanted) -> Condition:
    if wanted is None or (isinstance(wanted, str) and wanted in column.apart):
        return IsMissing(column.name, column.apart.index(_kind_of(column, wanted)))
    if isinstance(column, OrdinalColumn):
        first, last = (wanted, wanted) if isinstance(wanted, str) else wanted
        return _values_between(column, _read(column, first), _read(column, last))
    if isinstance(wanted, str):
        raise SpecError(f"column {column.name!r} is numeric: give an interval [low, high]")
    return _interval(column, *(_read(column, each) for each in wanted))


def _kind_of(column: Attribute, wanted: str | None) -> str:
    """The kind of missing values that a query names; null means the only kind."""
    if wanted is not None:
        return wanted
    if not column.nullable:
        raise SpecError(f"column {column.name!r} is declared to have no missing values")
    if len(column.kinds) > 1:
        raise SpecError(
            f"column {column.name!r} has several kinds of missing values; name one: "
            f"{', '.join(column.kinds)}"
        )
    return column.kinds[0]


def _read(column: Numeric, value: float | str) -> float:
    try:
        return column.read(value)
    except ValueError as problem:
        raise SpecError(str(problem)) from None


def _interval(column: Numeric, low: float, high: float) -> InInterval:
    line = column.line
    if not line.lower <= low < high <= line.upper:
        raise SpecError(
            f"the interval of column {column.name!r} must increase and lie between its bounds "
            f"{column.write(line.lower)} and {column.write(line.upper)}"
        )
    return InInterval(column.name, low, high)


def _values_between(column: OrdinalColumn, first: float, last: float) -> InInterval:
    """The values from the first to the last one, both included."""
    if first > last:
        raise SpecError(f"the values of column {column.name!r} must be in the declared order")
    upper = column.line.upper
    # An interval that ends at the upper bound includes it, so others end between two positions.
    return InInterval(column.name, first, upper if last == upper else last + 0.5)
