"""Single queries as boxes: an interval of codes for each column of the query.

Every marginal cell, range, prefix and tree cell is a box on the discrete codes of a model. A row is in
the box exactly if all of its conditions hold, so a box is one threshold unit of one layer, as the release
game requires of its critics (thesis on QueryGAN, theorem 5.1.1).
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from scrim.spec.schema import Attribute, Schema
from synth.queries.condition_arrays import ConditionArrays, in_bins
from synth.queries.features import CellFeatures, ConjunctionFeatures
from synth.queries.query_set import QuerySet

Box = Mapping[str, range]
"""The codes of each column that satisfy the query; columns without a condition are absent."""


def box_of(queries: QuerySet, query: int, schema: Schema) -> Box:
    """The box of one query of a set, by its position."""
    block, index = queries.locate(query)
    features = queries.blocks[block].features(schema)
    if isinstance(features, CellFeatures):
        return _cell(features, index, schema)
    assert isinstance(features, ConjunctionFeatures), "no interval of codes is a halfspace"
    conjunction = features.conjunctions[index]
    columns = [schema.attribute(condition.column) for condition in conjunction]
    conditions = in_bins([conjunction], columns)
    return {
        columns[column].name: range(int(low), int(high))
        for column, low, high in zip(
            conditions.column, conditions.low, conditions.high, strict=True
        )
    }


def _cell(features: CellFeatures, index: int, schema: Schema) -> Box:
    """The box of the cell at an index across all tables."""
    for axes in features.tables:
        sizes = [reading.size for reading in axes]
        if index < math.prod(sizes):
            break
        index -= math.prod(sizes)
    codes = np.unravel_index(index, sizes)
    box = {}
    for reading, code in zip(axes, codes, strict=True):
        inside = np.flatnonzero(reading.codes_of(schema.attribute(reading.column)) == code)
        # Bins are in the same order as the cells that contain them; a narrow cell may contain none.
        box[reading.column] = range(inside[0], inside[-1] + 1) if len(inside) else range(0)
    return box


def as_conditions(boxes: Sequence[Box], columns: Sequence[Attribute]) -> ConditionArrays:
    """Boxes as conditions, so that mixtures of products answer many at once."""
    position = {column.name: i for i, column in enumerate(columns)}
    listed = [
        (query, position[name], len(codes) == 1, codes.start, codes.stop)
        for query, box in enumerate(boxes)
        for name, codes in sorted(box.items(), key=lambda condition: len(condition[1]) != 1)
    ]
    query, column, is_point, low, high = zip(*listed, strict=True)
    return ConditionArrays(
        len(boxes),
        np.array(query, np.int64),
        np.array(column, np.int64),
        np.array(is_point, np.bool_),
        np.array(low, np.float64),
        np.array(high, np.float64),
    )
