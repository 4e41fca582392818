"""Random halfspaces: rows whose weighted sum of coordinates is at most a threshold."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.checkpoint import checkpoint

from scrim.spec.columns import LabelledColumn
from scrim.spec.population import Protection
from scrim.spec.schema import Attribute, Schema
from scrim.spec.sensitivity import Sensitivity, of_predicates
from scrim.spec.workload.halfspaces import HalfspaceBlock
from synth.planning.memory import KEPT_TABLES, MAX_ENTRIES
from synth.queries.block import Counts, QueryBlock
from synth.queries.coordinates import IS_MISSING, PLACE, coordinate_starts, span_of
from synth.queries.features import PLACES, Contribution, HalfspaceFeatures
from synth.queries.halfspace_counting import HalfspaceCounting
from synth.queries.halfspace_draws import UNIT, WEIGHT, Batch, HalfspaceDraws
from synth.queries.readable import SoftRows


@dataclass(frozen=True)
class HalfspaceQueries(QueryBlock):
    """Random halfspaces over all columns. Models with binned numbers cannot answer them."""

    reads: ClassVar[Literal["codes", "numbers"]] = "numbers"
    is_whole: ClassVar[bool] = False

    attributes: tuple[str, ...]
    block: HalfspaceBlock
    schema: Schema = field(hash=False, repr=False)
    picked: tuple[int, ...] | None = None
    """Positions of its queries in the block; None for all."""
    known: HalfspaceDraws | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, block: HalfspaceBlock, schema: Schema) -> "HalfspaceQueries":
        """The halfspaces of a block, drawn when they are first needed."""
        return cls(block.attributes, block, schema)

    def only(self, queries: Sequence[int]) -> "HalfspaceQueries":
        """Keep only some queries, so that a fit need not answer those that were not measured."""
        picked = tuple(self.numbers[query] for query in queries)
        return replace(self, picked=picked, known=self._draws)

    @property
    def numbers(self) -> Sequence[int]:
        """Positions of its queries in the block."""
        return range(self.block.count) if self.picked is None else self.picked

    @property
    def size(self) -> int:
        """Number of halfspaces."""
        return len(self.numbers)

    @property
    def name(self) -> str:
        """The name: number and seed."""
        of_all = "" if self.picked is None else f", {self.size} of these"
        return self.block.name + of_all

    def sensitivity(self, protection: Protection) -> Sensitivity:
        """The sensitivity: a row may be in all of them."""
        return of_predicates(self.size, protection)

    def labels(self, schema: Schema) -> Iterator[str]:
        """Such as `halfspace 17 of seed 3`."""
        return (f"halfspace {number} of seed {self.block.item.seed}" for number in self.numbers)

    @classmethod
    def counter(cls, blocks: Sequence["HalfspaceQueries"]) -> "HalfspaceCounter":
        """Count all of them in one pass over the rows."""
        return HalfspaceCounter(blocks)

    @classmethod
    def on_relaxed(cls, blocks: Sequence["HalfspaceQueries"], rows: SoftRows) -> torch.Tensor:
        """Means of sigmoids of the distance of each row's sum below the threshold."""
        entries = rows.size * sum(block.size for block in blocks)
        recompute = torch.is_grad_enabled() and entries > KEPT_TABLES * MAX_ENTRIES
        batches = (batch for block in blocks for batch in block.batches())
        return torch.cat([_on_relaxed(batch, rows, recompute) for batch in batches])

    def features(self, schema: Schema) -> HalfspaceFeatures:
        """The contribution of each column to the sums."""
        batches = list(self.batches())
        weights = np.concatenate([batch.weights for batch in batches]).T
        starts = coordinate_starts(self.columns)
        return HalfspaceFeatures(
            {c.name: _contribution(c, weights, starts[c.name]) for c in self.columns},
            np.concatenate([batch.thresholds for batch in batches]),
        )

    def batches(self) -> Iterator[Batch]:
        """The halfspaces in batches."""
        if self.picked is not None:
            yield self._picked_batch
            return
        for number in range(self._draws.batches):
            yield self._draws.batch(number)

    @cached_property
    def columns(self) -> tuple[Attribute, ...]:
        """The columns with a weight."""
        return tuple(self.schema.attribute(name) for name in self.attributes)

    @cached_property
    def _draws(self) -> HalfspaceDraws:
        if self.known is not None:
            return self.known
        return HalfspaceDraws(self.block.item.seed, self.block.count, self.columns)

    @cached_property
    def _picked_batch(self) -> Batch:
        assert self.picked is not None
        return self._draws.take(self.picked)


class HalfspaceCounter:
    """Counts blocks of halfspaces, chunk by chunk."""

    def __init__(self, blocks: Sequence[HalfspaceQueries]) -> None:
        self._blocks = blocks
        self._counting = [HalfspaceCounting(block.columns) for block in blocks]
        self._totals = [np.zeros(block.size, np.int64) for block in blocks]

    def add(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Count the rows of one chunk."""
        for block, counting, total in zip(self._blocks, self._counting, self._totals, strict=True):
            rows = counting.prepare(columns)
            total += np.concatenate([counting.count(rows, batch) for batch in block.batches()])

    def totals(self) -> list[Counts]:
        """The counts of each block."""
        return self._totals


def _on_relaxed(batch: Batch, rows: SoftRows, recompute: bool) -> torch.Tensor:
    """Answer in batches of halfspaces whose sums over all rows fit in memory."""
    weighed = rows.coordinates

    def mean(weights: torch.Tensor, thresholds: torch.Tensor) -> torch.Tensor:
        sums = (weights.to(weighed) / WEIGHT) @ weighed
        limits = (thresholds.double() / UNIT).to(weighed)
        return torch.sigmoid(rows.temperature * (limits[:, None] - sums)).mean(1)

    at_once = max(1, MAX_ENTRIES // rows.size)
    batches = zip(
        torch.split(torch.from_numpy(batch.weights), at_once),
        torch.split(torch.from_numpy(batch.thresholds), at_once),
        strict=True,
    )
    if not recompute:
        return torch.cat([mean(*some) for some in batches])
    again = [checkpoint(mean, *some, use_reentrant=False) for some in batches]
    return torch.cat(cast(list[torch.Tensor], again))


def _contribution(column: Attribute, weights: NDArray[np.int32], start: int) -> Contribution:
    """The contribution of one column; `weights` has one row per coordinate."""
    if isinstance(column, LabelledColumn):
        offset = weights[start : start + column.size].astype(np.int64) * PLACES
        return Contribution(lower=0.0, span=1.0, slope=None, offset=offset)
    return Contribution(
        lower=float(column.line.lower),
        span=span_of(column.line),
        slope=weights[start + PLACE].astype(np.int64),
        offset=weights[start + IS_MISSING].astype(np.int64)[None, :] * PLACES,
    )
