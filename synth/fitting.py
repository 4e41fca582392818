"""Fitting the model of a release through a door: that of the private rows, or a simulated one."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property

import torch

from scrim.spec.mechanism import MechanismSpec
from scrim.spec.schema import Schema
from scrim.spec.workload import NUMBER_OF_GROUPS
from synth.domain import Domain
from synth.door import Door, RowCount
from synth.mechanisms import run_mechanism
from synth.mechanisms.base import Cache, Job
from synth.models.base import Model
from synth.planning.plan import ReleasePlan
from synth.queries import QuerySet, compile_blocks
from synth.table import Table
from synth.threads import fitting_threads

Notes = Callable[[Mapping[str, float]], None]
Progress = Callable[[int, int], None]


def discard(found: Mapping[str, float]) -> None:
    """Discard figures about a fit."""


@dataclass(frozen=True)
class Fitting:
    """Everything that a fit needs besides a door."""

    mechanism: MechanismSpec
    planned: ReleasePlan
    queries: QuerySet
    """The workload's queries."""
    public: Table | None
    device: torch.device
    cache: Cache | None
    threads: int | None
    """The largest number of threads; None for torch's own."""

    @property
    def schema(self) -> Schema:
        """The schema of the released columns."""
        return self.planned.schema

    @cached_property
    def candidates(self) -> QuerySet:
        """The queries that may be measured."""
        return compile_blocks(self.planned.measured, self.schema)

    def threaded(self) -> AbstractContextManager[None]:
        """Let torch use the threads that fit the model while the block runs."""
        return fitting_threads(self.planned.memory_bytes, limit=self.threads)

    def fit(
        self, door: Door, rows: RowCount, *, progress: Progress, note: Notes = discard
    ) -> Model:
        """Run the mechanism through the door."""
        job = Job(
            door=door,
            schema=self.schema,
            domain=Domain.of(self.schema),
            queries=self.queries,
            candidates=self.candidates,
            estimated_rows=rows.value,
            estimated_rows_sigma=rows.sigma,
            plan=self.planned.spending,
            progress=progress,
            public=self.public,
            device=self.device,
            cache=self.cache,
            note=note,
        )
        return run_mechanism(job, self.mechanism)


def count_rows(planned: ReleasePlan, door: Door) -> RowCount:
    """The number of rows, or of groups if rows are linked."""
    budget = planned.split.row_count
    if not planned.schema.is_linked:
        return door.count_rows(budget=budget)
    (groups,) = compile_blocks([NUMBER_OF_GROUPS], planned.schema).blocks
    counted = door.measure(groups, budget=budget)
    return RowCount(max(1, int(counted.values[0])), counted.sigma)
