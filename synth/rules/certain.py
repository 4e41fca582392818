"""Rows of codes that break a rule whatever numbers are drawn inside their bins."""

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scrim.spec.rules.axes import Axis, apart, is_whole, line_of, origin
from scrim.spec.schema import Schema
from synth.rules.row_rules import Flags, Floats

Overlap = NDArray[np.bool_]


class CodeRules:
    """The rules about rows in terms of the codes of columns; columns without codes are left out."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._rules = schema.rule_set

    def broken(self, codes: Mapping[str, NDArray[Any]], rows: int) -> Flags:
        """Rows whose codes contain no row that follows every single rule."""
        found = np.zeros(rows, np.bool_)
        for each in self._rules.forbidden:
            inside = np.ones(rows, np.bool_)
            for name, parts in each.parts.items():
                if name not in self.overlaps:
                    inside[:] = False
                    break
                inside &= within(self.overlaps[name], parts)[codes[name]]
            found |= inside
        for order in self._rules.orders:
            if order.low in self.overlaps and order.high in self.overlaps:
                low = self.bounds[order.low][0][codes[order.low]]
                high = self.bounds[order.high][1][codes[order.high]]
                found |= low >= high if order.is_strict else low > high
        return found

    @cached_property
    def overlaps(self) -> dict[str, Overlap]:
        """For each column with codes, whether a code has values in each part."""
        sizes = self._schema.sizes
        return {
            name: overlap(axis, self._bounds(axis))
            for name, axis in self._rules.axes.items()
            if name in sizes
        }

    @cached_property
    def bounds(self) -> dict[str, tuple[Floats, Floats]]:
        """The smallest and the largest number of each bin; NaN for missing."""
        axes, sizes = self._rules.axes, self._schema.sizes
        return {name: self._bounds(axis) for name, axis in axes.items() if name in sizes}

    def _bounds(self, axis: Axis) -> tuple[Floats, Floats]:
        column = self._schema.attribute(axis.name)
        if axis.codes:
            nothing = np.full(column.size, np.nan)
            return nothing, nothing
        return bin_bounds(axis)


def within(overlaps: Overlap, parts: Collection[int]) -> Flags:
    """Whether all values of each code are in some of these parts."""
    return np.asarray(~np.delete(overlaps, list(parts), axis=1).any(axis=1), np.bool_)


def bin_bounds(axis: Axis) -> tuple[Floats, Floats]:
    """The smallest and the largest absolute number of each bin; NaN for missing."""
    line, start = line_of(axis.column), origin(axis.column)
    edges = np.array(line.edges)
    ends = edges[1:].copy()
    ends[:-1] = ends[:-1] - 1 if is_whole(axis.column) else np.nextafter(ends[:-1], -np.inf)
    missing = [np.nan] * len(apart(axis.column))
    return np.append(edges[:-1], missing) + start, np.append(ends, missing) + start


def overlap(axis: Axis, bounds: tuple[Floats, Floats]) -> Overlap:
    """Whether each code of a column has values in each part."""
    low, high = bounds
    found = np.zeros((len(low), axis.size), np.bool_)
    for part, codes in enumerate(axis.codes):
        found[list(codes), part] = True
    for part, (first, last) in enumerate(axis.intervals):
        found[:, part] = (low <= last) & (high >= first)
    if axis.missing is not None:
        found[-len(apart(axis.column)) :, axis.missing] = True
    return found
