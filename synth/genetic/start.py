"""Rows to start from: each column follows its measured shares, independently of the others."""

import math

import numpy as np

from scrim.spec.columns import IntegerColumn, LabelledColumn
from scrim.spec.schema import Attribute, Schema
from synth.genetic.measured_features import MeasuredFeatures
from synth.genetic.ragged import Floats, Integers
from synth.missing import numbers_of_kinds
from synth.models.sampling import draw_systematically
from synth.queries.reading import Reading
from synth.table import Table, store_numbers
from synth.table.encoding import attribute_codec


def follow_shares(
    values: Floats, features: MeasuredFeatures, schema: Schema, rng: np.random.Generator
) -> Floats:
    """Redraw the columns with measured shares; the others are unchanged."""
    drawn = list(values.T)
    shares = measured_shares(features)
    for position, column in enumerate(schema.attributes):
        if column.name in shares:
            reading, weights = shares[column.name]
            codes = draw_systematically(weights, len(values), rng)
            drawn[position] = _draw_inside(column, reading, codes, rng)
    return _as_stored(drawn, schema)


def measured_shares(features: MeasuredFeatures) -> dict[str, tuple[Reading, Floats]]:
    """The shares of each column's codes, from the least noisy table with that column; among equally noisy
    tables, from the finest."""
    shares: dict[str, tuple[Reading, Floats]] = {}
    ranks: dict[str, tuple[float, int]] = {}
    start = 0
    for axes in features.tables:
        sizes = [axis.size for axis in axes]
        end = start + math.prod(sizes)
        values, noise = features.values[start:end], features.noise[start:end]
        start = end
        if not np.isfinite(noise).all():
            continue
        for i, axis in enumerate(axes):
            others = tuple(other for other in range(len(axes)) if other != i)
            variance = (noise**2).reshape(sizes).sum(axis=others).mean()
            weights = np.maximum(values.reshape(sizes).sum(axis=others), 0)
            rank = (float(variance), -axis.size)
            if weights.any() and rank < ranks.get(axis.column, (math.inf, 0)):
                ranks[axis.column], shares[axis.column] = rank, (axis, weights)
    return shares


def _draw_inside(
    column: Attribute, reading: Reading, codes: Integers, rng: np.random.Generator
) -> Floats:
    """Draw numbers uniformly from the cells of the codes; a category is its code."""
    if reading.edges is None:
        return codes.astype(np.float64)
    if reading.name == column.name:
        codec = attribute_codec(column)  # which follows the shape of the bins
        return np.asarray(codec.numbers(codec.draw(codes, rng)), np.float64)
    edges = np.array(reading.edges)
    last = len(edges) - 2
    cells = np.minimum(codes, last)
    low, high = edges[cells], edges[cells + 1]
    if isinstance(column, LabelledColumn) or isinstance(column.line, IntegerColumn):
        # Integers below the next edge; the upper bound belongs to the last cell.
        numbers = np.floor(low + rng.random(len(codes)) * (high - low + (cells == last)))
    else:
        numbers = low + rng.random(len(codes)) * (high - low)
    kinds = numbers_of_kinds(max(1, reading.size - last - 1))
    return np.where(codes > last, kinds[np.maximum(codes - last - 1, 0)], numbers)


def _as_stored(columns: list[Floats], schema: Schema) -> Floats:
    """Return the same rows with the bounds and decimals of stored numbers."""
    names = [column.name for column in schema.attributes]
    chunk = store_numbers(schema, dict(zip(names, columns, strict=True)))
    [(_, numbers)] = Table(schema, [chunk]).read(codes=(), numbers=names)
    return np.stack([numbers[name].astype(np.float64) for name in names], axis=1)
