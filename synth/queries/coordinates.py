"""The coordinates of a row: categories one-hot, numbers as places between their bounds.

A category has a coordinate for each code. A number has two: its place, from 0 at the lower bound to 1
at the upper one, and whether it is missing, of whatever kind.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scrim.spec.columns import IntegerColumn, LabelledColumn, RealColumn
from scrim.spec.schema import Attribute
from scrim.spec.workload.halfspaces import coordinates

PLACE, IS_MISSING = 0, 1
"""The coordinates of a number."""


def coordinate_starts(columns: Sequence[Attribute]) -> dict[str, int]:
    """The first coordinate of each column, when all coordinates are side by side."""
    starts = np.cumsum([0, *(coordinates(column) for column in columns)])
    return {column.name: int(start) for column, start in zip(columns, starts, strict=False)}


def kind_starts(columns: Sequence[Attribute]) -> dict[str, int]:
    """For each column of numbers, the first row of its kinds of missing values in `SoftRows.points`.

    Several kinds come after all coordinates; a single one is the coordinate itself.
    """
    starts = coordinate_starts(columns)
    end = sum(coordinates(column) for column in columns)
    found: dict[str, int] = {}
    for column in columns:
        if isinstance(column, LabelledColumn):
            continue
        found[column.name] = end if len(column.apart) > 1 else starts[column.name] + IS_MISSING
        end += len(column.apart) if len(column.apart) > 1 else 0
    return found


def span_of(column: IntegerColumn | RealColumn) -> float:
    """The distance between the bounds; 1 if they are equal, so that every number is at place 0."""
    return float(column.upper - column.lower) or 1.0


def edge_places(
    column: IntegerColumn | RealColumn, edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The places that separate the numbers below each edge from the others; infinite if all or none are.

    Between two integers it is halfway, because a place between them is rounded to the nearest integer.
    """
    cuts = np.ceil(edges) - 0.5 if isinstance(column, IntegerColumn) else edges
    places = (cuts - column.lower) / span_of(column)
    return np.where(edges <= column.lower, -np.inf, np.where(edges > column.upper, np.inf, places))
