"""Which rows break a rule."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scrim.spec.columns import LabelledColumn
from scrim.spec.rules.axes import Axis, apart, origin
from scrim.spec.rules.rule_set import Forbidden, Order, RuleSet
from scrim.spec.schema import Schema
from synth.missing import kinds_in
from synth.table.chunk import Chunk
from synth.table.encoding import AttributeCodec, attribute_codec
from synth.table.reals import RealCodec

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

Numbers = dict[str, Floats]
"""The absolute numbers of columns (scrim/spec/rules/axes.py), or codes; NaN for missing ones of any kind."""
Parts = dict[str, Integers]
"""The parts of columns that rules distinguish (scrim/spec/rules/axes.py)."""


class RowRules:
    """The rules of a schema about rows, in terms of numbers."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.rules: RuleSet = schema.rule_set

    @cached_property
    def codecs(self) -> Mapping[str, AttributeCodec]:
        """The codecs of the columns that rules mention."""
        return {name: attribute_codec(self.schema.attribute(name)) for name in self.rules.axes}

    def numbers(self, chunk: Chunk) -> Numbers:
        """The numbers of the columns that rules mention."""
        return {
            name: absolute(self.rules.axes[name], codec.numbers(chunk[name]))
            for name, codec in self.codecs.items()
        }

    def rounded(self, chunk: Chunk) -> Chunk:
        """The chunk with real numbers as a release holds them, in the columns that rules mention.

        Whether a combination is impossible is decided for numbers with the declared decimals.
        """
        return dict(chunk) | {
            name: codec.rounded(chunk[name])
            for name, codec in self.codecs.items()
            if isinstance(codec, RealCodec)
        }

    def with_numbers(
        self, chunk: Chunk, rows: Integers, numbers: Mapping[str, Floats]
    ) -> dict[str, NDArray[Any]]:
        """The chunk with other numbers in some rows; cells whose number is the same stay as they are."""
        changed = dict(chunk)
        for name, mine in numbers.items():
            axis, codec = self.rules.axes[name], self.codecs[name]
            before = absolute(axis, codec.numbers(chunk[name][rows]))
            moved = (before != mine) & ~(np.isnan(before) & np.isnan(mine))
            if moved.any():
                changed[name] = chunk[name].copy()
                changed[name][rows[moved]] = codec.from_numbers(relative(axis, mine[moved]))
        return changed

    def parts(self, numbers: Mapping[str, Floats]) -> Parts:
        """The parts of the columns that numbers are in."""
        return {name: parts_of(self.rules.axes[name], each) for name, each in numbers.items()}

    def broken(self, chunk: Chunk) -> Flags:
        """Rows that break a rule about rows."""
        numbers = self.numbers(chunk)
        rows = len(next(iter(chunk.values())))
        return self.broken_by(numbers, self.parts(numbers), rows)

    def broken_by(self, numbers: Mapping[str, Floats], parts: Parts, rows: int) -> Flags:
        """Rows that break a rule about rows, given their numbers and parts."""
        found = forbidden_rows(self.rules.forbidden, self.rules.axes, parts, rows)
        for order in self.rules.orders:
            found |= out_of_order(order, numbers)
        return found


def absolute(axis: Axis, numbers: NDArray[Any]) -> Floats:
    """The absolute numbers of a column, from those that a table reads."""
    found = np.array(numbers, np.float64)
    if axis.codes:
        assert isinstance(axis.column, LabelledColumn)
        found[found >= len(axis.column.labels)] = np.nan
        return found
    found[kinds_in(found, len(apart(axis.column))) > 0] = np.nan
    return found + origin(axis.column)


def relative(axis: Axis, numbers: Floats) -> Floats:
    """Absolute numbers of a column as a codec reads them; missing ones are of the first kind."""
    if not axis.codes:
        return numbers - origin(axis.column)
    assert isinstance(axis.column, LabelledColumn)
    return np.where(np.isnan(numbers), len(axis.column.labels), numbers)


def parts_of(axis: Axis, numbers: Floats) -> Integers:
    """The part of each number of a column."""
    if axis.codes:
        part_of_code = np.empty(sum(map(len, axis.codes)) + 1, np.int64)
        part_of_code[-1] = axis.known
        for part, codes in enumerate(axis.codes):
            part_of_code[list(codes)] = part
        return part_of_code[np.where(np.isnan(numbers), -1, numbers).astype(np.int64)]
    starts = np.array([low for low, _ in axis.intervals])
    parts = np.searchsorted(starts[1:], numbers, side="right")
    parts[np.isnan(numbers)] = axis.known
    return parts


def forbidden_rows(
    forbidden: Iterable[Forbidden],
    axes: Mapping[str, Axis],
    parts: Mapping[str, Integers],
    rows: int,
) -> Flags:
    """Rows in a forbidden combination."""
    found = np.zeros(rows, np.bool_)
    for each in forbidden:
        inside = np.ones(rows, np.bool_)
        for name, some in each.parts.items():
            is_in = np.zeros(axes[name].size + 1, np.bool_)
            is_in[list(some)] = True
            inside &= is_in[parts[name]]
        found |= inside
    return found


def out_of_order(order: Order, numbers: Mapping[str, Floats]) -> Flags:
    """Rows whose numbers are not in order; rows in which one is missing are."""
    low, high = numbers[order.low], numbers[order.high]
    return np.asarray(low >= high if order.is_strict else low > high)
