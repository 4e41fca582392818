"""Conjunctions on a mixture of products: means over components of products of probabilities.

The probability of a condition in each component comes from a mixture over codes, where an interval is a
difference of cumulative sums, or from relaxed rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch.nn.functional import pad
from torch.utils.checkpoint import checkpoint

from scrim.spec.columns import LabelledColumn
from scrim.spec.schema import Attribute, Schema
from scrim.spec.workload.conditions import numeric_columns
from synth.missing import LIMIT, STEP
from synth.planning.memory import KEPT_TABLES, MAX_ENTRIES
from synth.queries.condition_arrays import ConditionArrays, Floats, Integers
from synth.queries.coordinates import coordinate_starts, edge_places, kind_starts
from synth.queries.readable import Products, SoftRows


@dataclass(frozen=True)
class Probabilities:
    """The probabilities of conditions, given by their positions, in each component.

    One row per condition, so that its numbers for all components are contiguous and fast to select.
    """

    components: int
    of_points: Callable[[torch.Tensor], torch.Tensor]
    of_intervals: Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Shape:
    """Conjunctions with the same numbers of points and intervals."""

    query: Integers
    points: torch.Tensor
    intervals: torch.Tensor
    """Positions of conditions: one row per condition of a conjunction."""

    def answers(self, probabilities: Probabilities, recompute: bool) -> torch.Tensor:
        """Means over components, in batches of conjunctions that fit in memory."""
        at_once = max(1, MAX_ENTRIES // probabilities.components)
        batches = zip(
            torch.split(self.points, at_once, 1),
            torch.split(self.intervals, at_once, 1),
            strict=True,
        )

        def mean(points: torch.Tensor, intervals: torch.Tensor) -> torch.Tensor:
            factors = [
                *(probabilities.of_points(conditions) for conditions in points),
                *(probabilities.of_intervals(conditions) for conditions in intervals),
            ]
            product = factors[0]
            for factor in factors[1:]:
                product = product * factor
            return product.mean(1)

        if not recompute:
            return torch.cat([mean(*batch) for batch in batches])
        again = [checkpoint(mean, *batch, use_reentrant=False) for batch in batches]
        return torch.cat(cast(list[torch.Tensor], again))


class ConjunctionProducts:
    """A plan for answering conjunctions from the probabilities of their conditions."""

    def __init__(self, conditions: ConditionArrays) -> None:
        self._conditions = len(conditions.query)
        self._shapes = _shapes(conditions)
        found = np.concatenate([shape.query for shape in self._shapes])
        self._order = torch.from_numpy(np.argsort(found))

    def answers(self, probabilities: Probabilities) -> torch.Tensor:
        """All conjunctions, in their order."""
        entries = probabilities.components * self._conditions
        recompute = torch.is_grad_enabled() and entries > KEPT_TABLES * MAX_ENTRIES
        answers = torch.cat([shape.answers(probabilities, recompute) for shape in self._shapes])
        return answers.index_select(0, self._order.to(answers.device))


def _shapes(conditions: ConditionArrays) -> list[Shape]:
    start = conditions.start()
    points = np.bincount(conditions.query[conditions.is_point], minlength=conditions.queries)
    intervals = np.diff(start) - points
    shapes = []
    for of_points, of_intervals in sorted(
        set(zip(points.tolist(), intervals.tolist(), strict=True))
    ):
        query = np.flatnonzero((points == of_points) & (intervals == of_intervals))
        # Points come before intervals in each query.
        mine = torch.from_numpy(start[query] + np.arange(of_points + of_intervals)[:, None])
        shapes.append(Shape(query, mine[:of_points], mine[of_points:]))
    return shapes


class BinRows:
    """The positions of conditions on codes in the probabilities of a mixture of products."""

    def __init__(self, conditions: ConditionArrays, attributes: Sequence[Attribute]) -> None:
        self._names = [column.name for column in attributes]
        sizes = np.array([column.size for column in attributes])
        starts = np.cumsum(sizes) - sizes
        has_intervals = np.isin(np.arange(len(sizes)), conditions.column[~conditions.is_point])
        self._cumulated = [
            name for name, used in zip(self._names, has_intervals, strict=True) if used
        ]
        # Cumulative sums start at zero, so there is one more than there are codes.
        lengths = np.where(has_intervals, sizes + 1, 0)
        cumulative_starts = np.cumsum(lengths) - lengths
        low, high = conditions.low.astype(np.int64), conditions.high.astype(np.int64)
        self._point = torch.from_numpy(starts[conditions.column] + low)
        self._low = torch.from_numpy(cumulative_starts[conditions.column] + low)
        self._high = torch.from_numpy(cumulative_starts[conditions.column] + high)

    def probabilities(self, mixture: Products) -> Probabilities:
        """The probabilities of the conditions in each component."""
        device = mixture.probabilities.device
        point, low, high = (rows.to(device) for rows in (self._point, self._low, self._high))
        table = mixture.columns(self._names).T.contiguous()
        sums = [mixture.columns([name]).cumsum(1) for name in self._cumulated]
        cumulative = torch.cat([pad(block, (1, 0)).T for block in sums] or [table])
        return Probabilities(
            len(mixture.probabilities),
            lambda conditions: table.index_select(0, point[conditions]),
            lambda conditions: (
                cumulative.index_select(0, high[conditions])
                - cumulative.index_select(0, low[conditions])
            ),
        )


class SoftPlaces:
    """The places of conditions on numbers in relaxed rows."""

    def __init__(
        self, conditions: ConditionArrays, attributes: Sequence[Attribute], schema: Schema
    ) -> None:
        starts, kinds = coordinate_starts(schema.attributes), kind_starts(schema.attributes)
        numeric = {name: i for i, name in enumerate(numeric_columns(schema))}
        point = np.zeros(len(conditions.query), np.int64)
        position, low, high = point.copy(), np.zeros(len(point)), np.zeros(len(point))
        for number, column in enumerate(attributes):
            mine = conditions.column == number
            if isinstance(column, LabelledColumn):
                point[mine] = starts[column.name] + conditions.low[mine].astype(np.int64)
                continue
            point[mine] = kinds[column.name] + _kinds_of(conditions.low[mine])
            position[mine] = numeric[column.name]
            low[mine] = edge_places(column.line, conditions.low[mine])
            high[mine] = edge_places(column.line, conditions.high[mine])
        self._point, self._position = torch.from_numpy(point), torch.from_numpy(position)
        self._low, self._high = torch.from_numpy(low), torch.from_numpy(high)

    def probabilities(self, rows: SoftRows) -> Probabilities:
        """The soft indicators of the conditions for each row."""
        table = rows.points
        point, position = self._point.to(table.device), self._position.to(table.device)
        low, high = self._low.to(table), self._high.to(table)
        return Probabilities(
            rows.size,
            lambda conditions: table.index_select(0, point[conditions]),
            lambda conditions: rows.between(
                position[conditions], low[conditions], high[conditions]
            ),
        )


def _kinds_of(low: Floats) -> Integers:
    """The kind of missing numbers that each condition asks for, given its lower end; 0 for intervals."""
    is_kind = np.isfinite(low) & (low < LIMIT)
    return np.where(is_kind, np.rint(np.where(is_kind, low, 0.0) / -STEP), 0).astype(np.int64)
