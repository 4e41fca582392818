"""Conjunctions on models that have a weight for each cell or row, with binned numbers."""

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise, product

import numpy as np
import torch

from scrim.spec.schema import Attribute
from synth.queries.box_counting import Weights
from synth.queries.condition_arrays import ConditionArrays, Flags, Floats, Integers
from synth.queries.conjunction_sums import ConjunctionSums
from synth.queries.readable import Cells, WeightedRows


class ConjunctionWeights:
    """A plan for answering conjunctions from weights on codes; attributes not in a model are uniform."""

    def __init__(
        self, conditions: ConditionArrays, columns: Sequence[Attribute], names: Sequence[str]
    ) -> None:
        known = np.array([column.name in names for column in columns])
        self._columns = [column for column in columns if column.name in names]
        self._conditions = conditions.on(known).sorted_by(np.arange(len(self._columns)))
        self._shares = None if known.all() else _uniform_shares(conditions, ~known, columns)

    def on_histogram(self, model: Cells) -> torch.Tensor:
        """Sums over the cells of cross tables of the conjunctions' columns."""
        conditions, start = self._conditions, self._conditions.start()
        totals = np.zeros(conditions.queries)
        tables = model.marginals([[self._columns[i].name for i in at] for at in self._by_columns])
        for (positions, query), table in zip(self._by_columns.items(), tables, strict=True):
            mine = start[query] + np.arange(len(positions))[:, None]
            low, high = (ends[mine].astype(np.int64) for ends in (conditions.low, conditions.high))
            totals[query] = _sums_in_table(table.numpy(), low, high)
        return self._answers(totals)

    def on_support(self, support: WeightedRows) -> torch.Tensor:
        """Sums over the weighted rows."""
        columns = {name: codes.numpy() for name, codes in support.codes.items()}
        return self._answers(self._sums.of(columns, support.weights.numpy()))

    def _answers(self, sums: Weights) -> torch.Tensor:
        return torch.from_numpy(sums if self._shares is None else sums * self._shares)

    @cached_property
    def _sums(self) -> ConjunctionSums:
        return ConjunctionSums(self._conditions, self._columns)

    @cached_property
    def _by_columns(self) -> dict[tuple[int, ...], Integers]:
        """Group queries by their columns."""
        column = self._conditions.column.tolist()
        members: dict[tuple[int, ...], list[int]] = {}
        for query, (start, end) in enumerate(pairwise(self._conditions.start().tolist())):
            members.setdefault(tuple(column[start:end]), []).append(query)
        return {positions: np.array(queries) for positions, queries in members.items()}


def _sums_in_table(table: Floats, low: Integers, high: Integers) -> Floats:
    """Sums over boxes of cells, from differences of cumulative sums at the corners."""
    sums = np.zeros([size + 1 for size in table.shape])
    sums[(slice(1, None),) * table.ndim] = table
    for axis in range(table.ndim):
        np.cumsum(sums, axis=axis, out=sums)
    totals = np.zeros(low.shape[1])
    for corner in product((False, True), repeat=table.ndim):
        ends = np.where(np.array(corner)[:, None], high, low)
        totals += (-1) ** (table.ndim - sum(corner)) * sums[tuple(ends)]
    return totals


def _uniform_shares(
    conditions: ConditionArrays, lacking: Flags, columns: Sequence[Attribute]
) -> Floats:
    """The probability of each query's conditions on attributes that a model lacks."""
    shares = np.ones(conditions.queries)
    sizes = np.array([column.size for column in columns])
    dropped = lacking[conditions.column]
    likely = (conditions.high - conditions.low) / sizes[conditions.column]
    np.multiply.at(shares, conditions.query[dropped], likely[dropped])
    return shares
