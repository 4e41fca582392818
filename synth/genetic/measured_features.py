"""Measured queries, by kind of features."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from scrim.spec.schema import Schema
from scrim.spec.workload.conditions import Conjunction, InInterval
from synth.genetic.ragged import Floats, joined
from synth.genetic.tables import table_size
from synth.queries import QuerySet
from synth.queries.features import CellFeatures, ConjunctionFeatures, Features, HalfspaceFeatures
from synth.queries.reading import Reading


@dataclass(frozen=True)
class MeasuredFeatures:
    """Queries in the order of their kinds: cells of tables, conjunctions, halfspaces."""

    tables: list[tuple[Reading, ...]]
    conjunctions: list[Conjunction]
    halfspaces: list[HalfspaceFeatures]
    values: Floats
    """The measured answer of each query, as a fraction."""
    noise: Floats
    """Standard deviation of each value; infinite if a cell was not measured."""

    def cuts(self) -> dict[str, set[float]]:
        """All values that numbers are compared with, by column."""
        cuts: dict[str, set[float]] = {}
        for reading in dict.fromkeys(joined(self.tables)):
            cuts.setdefault(reading.column, set()).update((reading.edges or ())[1:-1])
        for condition in joined(self.conjunctions):
            if isinstance(condition, InInterval):
                cuts.setdefault(condition.column, set()).update((condition.low, condition.high))
        return cuts


Piece = tuple[Features, Floats, Floats]
"""Some queries with their values and noise."""


def measured_features_of(
    measured: QuerySet, values: Floats, noise: Floats, schema: Schema
) -> MeasuredFeatures:
    """Sort queries by kind; noise is infinite for queries that were not measured."""
    tables: list[tuple[Reading, ...]] = []
    conjunctions: list[Conjunction] = []
    halfspaces: list[HalfspaceFeatures] = []
    cells, predicates, planes = [], [], []
    for features, expected, deviations in _pieces(measured, values, noise, schema):
        numbers = np.stack([expected, deviations])
        if isinstance(features, CellFeatures):
            tables += features.tables
            cells.append(numbers)
        elif isinstance(features, ConjunctionFeatures):
            conjunctions += features.conjunctions
            predicates.append(numbers)
        else:
            halfspaces.append(features)
            planes.append(numbers)
    values, noise = np.concatenate([np.zeros((2, 0)), *cells, *predicates, *planes], axis=1)
    return MeasuredFeatures(
        tables,
        conjunctions,
        halfspaces,
        values=np.where(np.isfinite(noise), values, 0.0),
        noise=noise,
    )


def _pieces(measured: QuerySet, values: Floats, noise: Floats, schema: Schema) -> Iterator[Piece]:
    """Tables with a measured cell, and all other measured queries."""
    for block, expected, deviations in zip(
        measured.blocks, measured.split(values), measured.split(noise), strict=True
    ):
        picked = np.flatnonzero(np.isfinite(deviations))
        if not block.is_whole and len(picked) < block.size:
            block, expected, deviations = (
                block.only(picked.tolist()),
                expected[picked],
                deviations[picked],
            )
        features = block.features(schema)
        if isinstance(features, CellFeatures):
            yield from _tables(features, expected, deviations)
        else:
            yield features, expected, deviations


def _tables(features: CellFeatures, values: Floats, noise: Floats) -> Iterable[Piece]:
    start = 0
    for axes in features.tables:
        end = start + table_size(axes)
        if np.isfinite(noise[start:end]).any():
            yield CellFeatures([axes]), values[start:end], noise[start:end]
        start = end
