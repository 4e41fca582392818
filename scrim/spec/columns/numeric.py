"""Columns of numbers between declared bounds."""

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field

from scrim.spec.columns.declared import MAX_CODES
from scrim.spec.columns.grid import NumberLine
from scrim.spec.columns.numbers import MAX_SPECIAL, NumericColumn, refuse_special

LARGEST_INTEGER = 2**53
"""Largest magnitude of a declared bound: integers beyond it have no exact float."""

LARGEST_BESIDE_KINDS = 1e300
"""Largest magnitude of a real lower bound if there are several kinds of missing values. Numbers far below
it stand for these kinds (synth/missing.py)."""


def _checked_edges(edges: list[float], lower: float, upper: float) -> None:
    if edges[0] != lower or edges[-1] != upper:
        raise ValueError('the first edge must equal "lower" and the last must equal "upper"')


def _refuse_many(bins: int) -> None:
    if bins > MAX_CODES:
        raise ValueError(f"the width makes more than {MAX_CODES:,} bins; use a larger one")


class IntegerColumn(NumericColumn):
    """A column of whole numbers between two declared bounds, both included."""

    type: Literal["integer"]
    """Always `integer`."""
    lower: Annotated[int, Field(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]
    """Smallest value; smaller ones are raised to it."""
    upper: Annotated[int, Field(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]
    """Largest value; larger ones are lowered to it."""
    special: Annotated[
        list[Annotated[int, Field(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]],
        Field(max_length=MAX_SPECIAL, exclude_if=lambda special: not special),
    ] = []
    """Values with a meaning of their own, such as -1 for "never". Each gets a bin of its own."""

    @cached_property
    def number_line(self) -> NumberLine:
        """Whole numbers."""
        special = tuple(map(float, sorted(self.special)))
        return NumberLine(float(self.lower), float(self.upper), 0, special)

    def refuse_faults(self) -> None:
        """Require consistent bounds and bins."""
        if self.lower > self.upper:
            raise ValueError('"lower" must not be larger than "upper"')
        refuse_special(self.special, self.number_line)
        self.refuse_missing()
        bins = self.bins
        if bins is None:
            return
        whole = self.upper - self.lower + 1
        if bins.width is not None and bins.width != int(bins.width):
            raise ValueError("the bin width of an integer column must be a whole number")
        if bins.count is not None and bins.count > whole:
            raise ValueError(f"{bins.count} bins do not fit into {whole} whole numbers")
        if bins.adaptive is None:
            _refuse_many(self._declared_count)
        if bins.edges is not None:
            if self.lower < self.upper:
                _checked_edges(bins.edges, self.lower, self.upper)
            else:
                raise ValueError("a column with one value needs no edges; use a width of 1")
            listed = [*bins.edges, *(bins.shape.edges if bins.shape else ())]
            if any(edge != int(edge) for edge in listed):
                raise ValueError("the edges of an integer column must be whole numbers")

    @property
    def line(self) -> "IntegerColumn":
        """The column itself."""
        return self

    def _holds(self, number: float) -> bool:
        return self.lower <= number <= self.upper

    def _declared_edges(self) -> tuple[float, ...]:
        """Integer edges; the last is `upper` itself, which belongs to the last bin."""
        bins = self._declared_bins
        if bins.edges is not None:
            return tuple(bins.edges)
        if bins.adaptive is not None:
            return self.grid.edges[-1]
        whole = self.upper - self.lower + 1
        starts: Iterable[int]
        if bins.width is not None:
            starts = range(self.lower, self.upper + 1, int(bins.width))
        else:
            assert bins.count is not None
            starts = [self.lower + whole * i // bins.count for i in range(bins.count)]
        return (*(float(start) for start in starts), float(self.upper))

    @property
    def _declared_count(self) -> int:
        bins = self._declared_bins
        if bins.edges is not None:
            return len(bins.edges) - 1
        if bins.width is not None:
            # Rounded up, in integers: it is asked for very often.
            return -(-(self.upper - self.lower + 1) // int(bins.width))
        assert bins.count is not None
        return bins.count


class RealColumn(NumericColumn):
    """A column of real numbers between two declared bounds, both included."""

    type: Literal["real"]
    """Always `real`."""
    lower: float
    """Smallest value; smaller ones are raised to it."""
    upper: float
    """Largest value; larger ones are lowered to it."""
    decimals: Annotated[int, Field(ge=0, le=15)] | None = None
    """Decimals of released values. Default: as many as needed."""
    special: Annotated[
        list[float], Field(max_length=MAX_SPECIAL, exclude_if=lambda special: not special)
    ] = []
    """Values with a meaning of their own, such as 0 for "no income". Each gets a bin of its own."""

    @cached_property
    def number_line(self) -> NumberLine:
        """Numbers with the declared decimals, or all floats."""
        special = tuple(sorted(number + 0.0 for number in self.special))
        return NumberLine(self.lower, self.upper, self.decimals, special)

    def refuse_faults(self) -> None:
        """Require consistent bounds, bins and decimals, without listing bins of equal width."""
        if self.lower >= self.upper:
            raise ValueError('"lower" must be smaller than "upper"')
        if not math.isfinite(self.upper - self.lower):
            raise ValueError('the distance from "lower" to "upper" is too large for a number')
        if len(self.kinds) > 1 and self.lower < -LARGEST_BESIDE_KINDS:
            raise ValueError(
                f'a column with several kinds in "missing" needs "lower" to be at least '
                f"-{LARGEST_BESIDE_KINDS:g}"
            )
        self.refuse_missing()
        refuse_special(self.special, self.number_line)
        if self.bins is None or self.bins.adaptive is not None:
            self._refuse_empty_cells([self.lower, self.upper])
        elif self.bins.edges is not None:
            _checked_edges(self.bins.edges, self.lower, self.upper)
            shape = self.bins.shape
            self._refuse_empty_cells(self.bins.edges if shape is None else shape.edges)
        else:
            _refuse_many(self._declared_count)
            self._refuse_narrow_bins()
        if self.bins is not None and self.special:
            self._refuse_empty_cells(list(self.edges))

    def _refuse_narrow_bins(self) -> None:
        """Require that equal bins differ as floats and each contain a number with the declared decimals."""
        lower, number = _as_written(self.lower), self._declared_count
        last = float(lower + (number - 1) * self._width)
        # The largest distance between neighbouring floats; an edge is off by at most half of it.
        grain = Fraction(math.ulp(max(abs(self.lower), abs(self.upper))))
        if (number > 1 and self._width <= grain) or last >= self.upper:
            raise ValueError("the bins are too narrow for floating-point numbers; use wider bins")
        self._refuse_empty_cells([last, self.upper])
        if number == 1 or self.decimals is None:
            return
        # In units of the last decimal. Bins wider than one unit contain a number at any position.
        scale = 10**self.decimals
        width, start, off = self._width * scale, lower * scale, 2 * grain * scale
        if width >= 1 + off:
            return
        # Narrower bins contain at most one number. So all contain one exactly if there are number - 1
        # numbers from the start of the first bin to that of the last.
        is_exact = Fraction(1, math.lcm(start.denominator, width.denominator)) > off
        steps = math.ceil(start + (number - 1) * width) - math.ceil(start)
        if not is_exact or steps < number - 1:
            raise ValueError(
                f"some bins may contain no number with {self.decimals} decimals; use more decimals or "
                "wider bins"
            )

    def _refuse_empty_cells(self, edges: list[float]) -> None:
        """Require a number with the declared decimals in every bin, since released values are rounded."""
        if self.decimals is None:
            return
        marks = [Decimal(repr(edge)).scaleb(self.decimals) for edge in edges]
        starts = [mark.to_integral_value(ROUND_CEILING) for mark in marks]
        for i, (start, end) in enumerate(pairwise(starts)):
            # Bins are half-open, so a number at the end is in the next bin; only the last is closed.
            if start >= end and not (i == len(edges) - 2 and start == marks[-1]):
                raise ValueError(
                    f"no number with {self.decimals} decimals lies in the bin from {edges[i]:g} to "
                    f"{edges[i + 1]:g}; use more decimals or wider bins"
                )

    @property
    def line(self) -> "RealColumn":
        """The column itself."""
        return self

    def _holds(self, number: float) -> bool:
        return self.lower <= number <= self.upper

    def _declared_edges(self) -> tuple[float, ...]:
        """Edges of the bins, computed exactly from the decimals as written, and rounded once."""
        bins = self._declared_bins
        if bins.edges is not None:
            return tuple(bins.edges)
        if bins.adaptive is not None:
            return self.grid.edges[-1]
        number, lower, width = self._declared_count, _as_written(self.lower), self._width
        # Integers over a common denominator are many times faster than adding fractions.
        denominator = math.lcm(lower.denominator, width.denominator)
        start, step = int(lower * denominator), int(width * denominator)
        return (*((start + i * step) / denominator for i in range(number)), self.upper)

    @property
    def _declared_count(self) -> int:
        bins = self._declared_bins
        if bins.edges is not None:
            return len(bins.edges) - 1
        if bins.width is not None:
            return math.ceil(
                (_as_written(self.upper) - _as_written(self.lower)) / _as_written(bins.width)
            )
        assert bins.count is not None
        return bins.count

    @property
    def _width(self) -> Fraction:
        """The exact width of equal bins; the last one may be narrower."""
        bins = self._declared_bins
        if bins.width is not None:
            return _as_written(bins.width)
        return (_as_written(self.upper) - _as_written(self.lower)) / self._declared_count


def _as_written(number: float) -> Fraction:
    """The decimal as written: eleven widths of 0.1 are exactly 1.1, unlike their floats."""
    return Fraction(repr(number))
