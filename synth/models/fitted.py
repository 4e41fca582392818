"""What a model answers to the queries that were measured."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from synth.measurements import Measurement
from synth.models.base import Model
from synth.queries import QueryBlock, QuerySet, Single

Floats = NDArray[np.float64]


def fitted_counts(model: Model, rows: int, measurements: Sequence[Measurement]) -> list[Floats]:
    """The model's counts, as many for each measurement as it has values."""
    place = _places([measurement.query for measurement in measurements])
    queries = QuerySet(dict.fromkeys(block for block, _ in place))
    counts = model.answer(queries).values * rows
    of_block = dict(zip(queries.blocks, queries.split(counts), strict=True))
    return [of_block[block][picked] for block, picked in place]


def _places(
    queries: Sequence[QueryBlock | Single],
) -> list[tuple[QueryBlock, slice | list[int]]]:
    """For each query, a block that contains it and its position; blocks are reduced to what is needed."""
    needed: dict[QueryBlock, set[int]] = {}
    for query in queries:
        if isinstance(query, Single) and not query.block.is_whole:
            needed.setdefault(query.block, set()).add(query.index)
    smaller = {block: block.only(sorted(indices)) for block, indices in needed.items()}
    position = {block: sorted(indices).index for block, indices in needed.items()}
    places: list[tuple[QueryBlock, slice | list[int]]] = []
    for query in queries:
        if not isinstance(query, Single):
            places.append((query, slice(None)))
        elif query.block in needed:
            places.append((smaller[query.block], [position[query.block](query.index)]))
        else:
            places.append((query.block, [query.index]))
    return places
