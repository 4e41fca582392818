"""Orthogonal parts of tables of counts, and their estimates by least squares."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synth.planning.precision import Names

Table = NDArray[np.float64]


@dataclass(frozen=True)
class OrthogonalPart:
    """An estimate of one part, and the variance of its noise."""

    table: Table
    variance: float


def sum_to(table: Table, attributes: Names, kept: Names) -> Table:
    """Sum a table over the attributes that are not kept."""
    return np.asarray(table.sum(axis=tuple(i for i, n in enumerate(attributes) if n not in kept)))


def centre(table: Table) -> Table:
    """Subtract the mean along every axis."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def weighted_mean(parts: list[OrthogonalPart]) -> OrthogonalPart:
    """Combine independent estimates of one part, weighted by their precision."""
    exact = [part for part in parts if part.variance == 0]
    if exact:
        return exact[0]
    precision = np.array([1 / part.variance for part in parts])
    mean = sum(p * part.table for p, part in zip(precision, parts, strict=True)) / precision.sum()
    return OrthogonalPart(np.asarray(mean), float(1 / precision.sum()))
