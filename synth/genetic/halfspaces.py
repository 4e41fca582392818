"""Halfspaces: rows whose sum of column contributions is at most a threshold."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scrim.spec.columns import LabelledColumn
from scrim.spec.schema import Attribute
from synth.genetic.candidates import Candidates
from synth.genetic.columns import Columns
from synth.genetic.compiled import compiled
from synth.genetic.query_counts import JOINS, LEAVES, QueryCounts, move
from synth.genetic.ragged import Floats, Integers, starts
from synth.queries.features import PLACES, HalfspaceFeatures


class HalfspaceArrays(NamedTuple):
    """Halfspaces, each over all columns."""

    first_query: int
    thresholds: Integers
    steps: int
    """Number of steps between the bounds of a number (synth/queries/features.py::place)."""
    lower: Floats
    span: Floats
    """The lower bound, and the distance between the bounds, of each numeric column."""
    weight_start: Integers
    weights: Integers
    """One column per halfspace. A category has one row per code; a number has two rows: the weight of a
    step, and the weight of a missing number."""
    sums: Integers
    """The sum of each row for each halfspace, in integers, which are exact in any order."""


def new_halfspaces(
    blocks: Sequence[HalfspaceFeatures],
    attributes: Sequence[Attribute],
    values: Floats,
    *,
    first_query: int,
) -> HalfspaceArrays:
    """The halfspaces of all blocks side by side, and the sums of rows."""
    none = np.zeros(0, np.int64)
    bounds = np.array([_bounds_of(column, blocks) for column in attributes])
    lower, span = np.ascontiguousarray(bounds.T)
    weights = [_weights_of(column, blocks) for column in attributes]
    sums = [_sums_of(block, attributes, values) for block in blocks]
    return HalfspaceArrays(
        first_query=first_query,
        thresholds=np.concatenate([none, *(block.thresholds for block in blocks)]),
        steps=PLACES,
        lower=lower,
        span=span,
        weight_start=starts(weights),
        weights=np.concatenate(weights),
        sums=np.concatenate([np.zeros((len(values), 0), np.int64), *sums], axis=1),
    )


def _bounds_of(column: Attribute, blocks: Sequence[HalfspaceFeatures]) -> tuple[float, float]:
    found = [block.contributions.get(column.name) for block in blocks]
    return next(((each.lower, each.span) for each in found if each is not None), (0.0, 1.0))


def _weights_of(column: Attribute, blocks: Sequence[HalfspaceFeatures]) -> Integers:
    height = column.size if isinstance(column, LabelledColumn) else 2
    beside = [np.zeros((height, 0), np.int64)]
    for block in blocks:
        found = block.contributions.get(column.name)
        if found is None:
            beside.append(np.zeros((height, len(block.thresholds)), np.int64))
        elif found.slope is None:
            beside.append(found.offset)
        else:
            beside.append(np.vstack([found.slope, found.offset]))
    return np.concatenate(beside, axis=1)


def _sums_of(block: HalfspaceFeatures, attributes: Sequence[Attribute], values: Floats) -> Integers:
    sums = np.zeros((len(values), len(block.thresholds)), np.int64)
    for column, numbers in zip(attributes, values.T, strict=True):
        if column.name in block.contributions:
            sums += block.contributions[column.name].of(numbers)
    return sums


def count_in_halfspaces(halfspaces: HalfspaceArrays) -> Integers:
    """The number of rows in each halfspace."""
    counts: Integers = (halfspaces.sums <= halfspaces.thresholds).sum(axis=0, dtype=np.int64)
    return counts


@compiled
def change_halfspaces(
    halfspaces: HalfspaceArrays,
    query_counts: QueryCounts,
    columns: Columns,
    values: Floats,
    candidates: Candidates,
    start: int,
    end: int,
    is_kept: bool,
) -> None:
    """Update the row's sums, and its membership in halfspaces whose threshold they cross."""
    thresholds = halfspaces.thresholds
    if len(thresholds) == 0:
        return
    for index in range(start, end):
        row, column = candidates.row[index], candidates.column[index]
        one, times, other, other_times = _difference(
            halfspaces, columns, column, values[row, column], candidates.value[index]
        )
        weights, other_weights = halfspaces.weights[one], halfspaces.weights[other]
        sums = halfspaces.sums[row]
        change = 0.0
        for plane in range(len(thresholds)):
            moved = sums[plane] + times * weights[plane] + other_times * other_weights[plane]
            is_inside = moved <= thresholds[plane]
            if is_inside != (sums[plane] <= thresholds[plane]):
                query, direction = halfspaces.first_query + plane, JOINS if is_inside else LEAVES
                change += query_counts.gains[query, direction]
                if is_kept:
                    move(query_counts, query, direction)
            if is_kept:
                sums[plane] = moved
        candidates.score[index] += change


@compiled
def _difference(
    halfspaces: HalfspaceArrays, columns: Columns, column: int, old: float, new: float
) -> tuple[int, int, int, int]:
    """The change of the sums as two rows of weights, each with its factor."""
    start = halfspaces.weight_start[column]
    if columns.is_category[column]:
        return start + int(new), 1, start + int(old), -1
    steps = _steps_of(halfspaces, column, new) - _steps_of(halfspaces, column, old)
    lower = halfspaces.lower[column]
    # Missing numbers of every kind are not above the lower bound.
    return start, steps, start + 1, int(not new >= lower) - int(not old >= lower)


@compiled
def _steps_of(halfspaces: HalfspaceArrays, column: int, value: float) -> int:
    """The nearest step between the bounds; 0 if the number is missing."""
    if not value >= halfspaces.lower[column]:
        return 0
    share = (value - halfspaces.lower[column]) / halfspaces.span[column]
    return int(np.rint(min(max(share, 0.0), 1.0) * halfspaces.steps))
