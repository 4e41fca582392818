"""The declared, public shape of a table. Nothing here is ever inferred from private rows."""

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from synth.spec.base import Name, Spec, ToldApartBy

MAX_COLUMNS = 1000
MAX_CODES = 1_000_000
LARGEST_INTEGER = 2**53
"""Integers beyond this have no exact float, so a declared bound may not pass it."""


class Bins(Spec):
    """How a number is cut into half-open cells [a, b), the last one closed. Give exactly one field."""

    width: Annotated[float, Field(gt=0)] | None = None
    """Cells of this width, counted from `lower`; the last one may be narrower."""
    count: Annotated[int, Field(ge=1, le=MAX_CODES)] | None = None
    """This many cells of equal width."""
    edges: Annotated[list[float], Field(min_length=2, max_length=MAX_CODES)] | None = None
    """Increasing edges; the first is `lower`, the last is `upper`."""

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        given = [name for name in ("width", "count", "edges") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError("give exactly one of width, count and edges")
        if self.edges is not None and any(
            a >= b for a, b in zip(self.edges, self.edges[1:], strict=False)
        ):
            raise ValueError("edges must increase")
        return self


class CategoricalColumn(Spec):
    """A column with a declared list of text values."""

    name: Name
    """The column's name in the uploaded file."""
    type: Literal["categorical"]
    """Always `categorical`."""
    values: Annotated[
        list[Annotated[str, Field(max_length=1000)]], Field(min_length=1, max_length=MAX_CODES)
    ]
    """Every value the column may take, as text. Order is kept."""
    other: Annotated[str, Field(max_length=1000)] = "other"
    """Stands for every value that is not declared. One of `values`, or a category added to them."""
    nullable: bool = True
    """Whether a missing value is kept as missing; if not, it becomes `other`."""

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        first: dict[str, int] = {}
        for position, value in enumerate(self.values):
            if first.setdefault(value, position) != position:
                raise ValueError(
                    f"values must be distinct; numbers {first[value]} and {position}, counted from 0, "
                    "are the same"
                )
        return self

    @property
    def labels(self) -> tuple[str, ...]:
        """The text of every code but the null code: the values, and `other` where it is added."""
        return tuple(self.values) if self.other in self.values else (*self.values, self.other)

    @property
    def size(self) -> int:
        """Number of codes: labels, then one for missing where `nullable`."""
        return len(self.labels) + self.nullable


class _NumericColumn(Spec):
    name: Name
    """The column's name in the uploaded file."""
    bins: Bins | None = None
    """Needed by mechanisms that work on discrete domains; released values are drawn inside the bin."""
    nullable: bool = True
    """Whether a missing value is kept as missing; if not, it becomes `lower`."""

    @property
    def edges(self) -> tuple[float, ...]:
        """Edges of the half-open bins, the last one closed at `upper`."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """Number of codes: bins, then one for missing where `nullable`."""
        return self._bin_count + self.nullable

    @property
    def _declared_bins(self) -> Bins:
        if self.bins is None:
            raise ValueError(f"column {self.name!r} has no bins")
        return self.bins

    @property
    def _bin_count(self) -> int:
        # Counted without the edges, of which there may be a million.
        raise NotImplementedError


def _checked_edges(edges: list[float], lower: float, upper: float) -> None:
    if edges[0] != lower or edges[-1] != upper:
        raise ValueError("the first edge must equal lower and the last must equal upper")


class IntegerColumn(_NumericColumn):
    """A column of whole numbers between two declared bounds, both included."""

    type: Literal["integer"]
    """Always `integer`."""
    lower: Annotated[int, Field(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]
    """Smallest value; smaller ones are raised to it."""
    upper: Annotated[int, Field(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]
    """Largest value; larger ones are lowered to it."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.lower > self.upper:
            raise ValueError("lower must not exceed upper")
        bins = self.bins
        if bins is None:
            return self
        whole = self.upper - self.lower + 1
        if bins.width is not None:
            if bins.width != int(bins.width):
                raise ValueError("the bin width of an integer column must be a whole number")
            if whole / bins.width > MAX_CODES:
                raise ValueError(f"that makes more than {MAX_CODES} bins; use a larger width")
        if bins.count is not None and bins.count > whole:
            raise ValueError(f"{bins.count} bins do not fit into {whole} whole numbers")
        if bins.edges is not None:
            if self.lower < self.upper:
                _checked_edges(bins.edges, self.lower, self.upper)
            else:
                raise ValueError("a column with one value needs no edges; use a width of 1")
            if any(edge != int(edge) for edge in bins.edges):
                raise ValueError("the edges of an integer column must be whole numbers")
        return self

    @property
    def edges(self) -> tuple[float, ...]:
        """Whole-number edges; the last is `upper` itself, and belongs to the last bin."""
        bins = self._declared_bins
        if bins.edges is not None:
            return tuple(bins.edges)
        whole = self.upper - self.lower + 1
        starts: Iterable[int]
        if bins.width is not None:
            starts = range(self.lower, self.upper + 1, int(bins.width))
        else:
            assert bins.count is not None
            starts = [self.lower + whole * i // bins.count for i in range(bins.count)]
        return (*(float(start) for start in starts), float(self.upper))

    @property
    def _bin_count(self) -> int:
        bins = self._declared_bins
        if bins.edges is not None:
            return len(bins.edges) - 1
        if bins.width is not None:
            return math.ceil(Fraction(self.upper - self.lower + 1) / int(bins.width))
        assert bins.count is not None
        return bins.count


class RealColumn(_NumericColumn):
    """A column of real numbers between two declared bounds, both included."""

    type: Literal["real"]
    """Always `real`."""
    lower: float
    """Smallest value; smaller ones are raised to it."""
    upper: float
    """Largest value; larger ones are lowered to it."""
    decimals: Annotated[int, Field(ge=0, le=15)] | None = None
    """Digits after the point of released values; as many as needed where not given."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.lower >= self.upper:
            raise ValueError("lower must be below upper")
        if not math.isfinite(self.upper - self.lower):
            raise ValueError("upper - lower must be finite")
        bins = self.bins
        if bins is not None and bins.edges is not None:
            _checked_edges(bins.edges, self.lower, self.upper)
        if (
            bins is not None
            and bins.width is not None
            and (self.upper - self.lower) / bins.width > MAX_CODES
        ):
            raise ValueError(f"that makes more than {MAX_CODES} bins; use a larger width")
        if bins is not None and any(
            a >= b for a, b in zip(self.edges, self.edges[1:], strict=False)
        ):
            raise ValueError("the bins are narrower than floating point can tell apart")
        self._refuse_empty_cells()
        return self

    def _refuse_empty_cells(self) -> None:
        """Released values are rounded, so every cell must hold a number with that many digits."""
        if self.decimals is None:
            return
        scale = 10**self.decimals
        edges = (self.lower, self.upper) if self.bins is None else self.edges
        marks = [_as_written(edge) * scale for edge in edges]
        last = len(marks) - 2
        for i, (low, high) in enumerate(pairwise(marks)):
            largest = (
                math.floor(high) if i == last else math.ceil(high) - 1
            )  # only the last is closed
            if largest < math.ceil(low):
                raise ValueError(
                    f"no number with {self.decimals} decimals lies in the cell from {edges[i]:g} to "
                    f"{edges[i + 1]:g}; use more decimals or wider bins"
                )

    @property
    def edges(self) -> tuple[float, ...]:
        """Edges of the bins, computed exactly from the decimals as written, and rounded once."""
        bins = self._declared_bins
        if bins.edges is not None:
            return tuple(bins.edges)
        number = self._bin_count
        lower, upper = _as_written(self.lower), _as_written(self.upper)
        width = (upper - lower) / number if bins.width is None else _as_written(bins.width)
        # Whole numbers over one denominator, many times faster than adding fractions.
        denominator = math.lcm(lower.denominator, width.denominator)
        start, step = int(lower * denominator), int(width * denominator)
        return (*((start + i * step) / denominator for i in range(number)), self.upper)

    @property
    def _bin_count(self) -> int:
        bins = self._declared_bins
        if bins.edges is not None:
            return len(bins.edges) - 1
        if bins.width is not None:
            return math.ceil(
                (_as_written(self.upper) - _as_written(self.lower)) / _as_written(bins.width)
            )
        assert bins.count is not None
        return bins.count


def _as_written(number: float) -> Fraction:
    """The decimal a person wrote: eleven widths of 0.1 are exactly 1.1, as their floats are not."""
    return Fraction(repr(number))


class IdentifierColumn(Spec):
    """A column that tells people or groups apart. It is never released."""

    name: Name
    """The column's name in the uploaded file."""
    type: Literal["identifier"]
    """Always `identifier`."""


Column = Annotated[
    CategoricalColumn | IntegerColumn | RealColumn | IdentifierColumn, ToldApartBy("type")
]
"""One declared column."""

Attribute = CategoricalColumn | IntegerColumn | RealColumn
"""A column that carries information and is released."""

Columns = Annotated[list[Column], Field(min_length=1, max_length=MAX_COLUMNS)]


def refuse_repeated_names(columns: list[Column]) -> None:
    repeated = [name for name, times in Counter(c.name for c in columns).items() if times > 1]
    if repeated:
        raise ValueError(f"column names must be distinct; repeated: {repeated[0]!r}")


class Schema(Spec):
    """The declared columns of a table, in the order in which they are released."""

    columns: Columns
    """The columns. Columns of the uploaded file that are not declared are ignored."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse_repeated_names(self.columns)
        if not self.attributes:
            raise ValueError("declare at least one column that is not an identifier")
        return self

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The columns that are released."""
        return tuple(c for c in self.columns if not isinstance(c, IdentifierColumn))

    @cached_property
    def sizes(self) -> dict[str, int]:
        """How many codes each column has that is categorical or has bins."""
        return {
            column.name: column.size
            for column in self.attributes
            if isinstance(column, CategoricalColumn) or column.bins is not None
        }

    def attribute(self, name: str) -> Attribute:
        """The released column of that name."""
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Attribute]:
        return {column.name: column for column in self.attributes}
