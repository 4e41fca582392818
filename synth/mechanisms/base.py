"""The input of a mechanism."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar, cast

import numpy as np
import torch

from scrim.spec.schema import Schema
from synth.domain import Domain
from synth.door import Door
from synth.measurements import Measurement
from synth.planning.spending import OneShot, Plan
from synth.queries import QueryBlock, QuerySet, Single, compile_blocks
from synth.rules.cells import CellRules
from synth.table import Table

CPU = torch.device("cpu")


class Cache(Protocol):
    """Stores results of public computations under a hash of everything they depend on."""

    def get(self, key: str) -> bytes | None:
        """Return the content stored under the key, or None."""

    def put(self, key: str, content: bytes) -> None:
        """Store content under a key; it never changes afterwards."""


PlanT = TypeVar("PlanT", bound=Plan, covariant=True)
AnyPlan = TypeVar("AnyPlan", bound=Plan)


@dataclass(frozen=True)
class Job(Generic[PlanT]):
    """One run of a mechanism, with its plan for spending the budget."""

    door: Door
    schema: Schema
    domain: Domain
    queries: QuerySet
    """The workload's queries."""
    candidates: QuerySet
    """The queries that may be measured."""
    estimated_rows: int
    """The number of rows (of groups, where rows are linked): public, or measured with noise."""
    estimated_rows_sigma: float
    """Standard deviation of that number; 0 if it is public."""
    plan: PlanT
    """How the mechanism spends its budget."""
    progress: Callable[[int, int], None]
    """Called with the number of finished rounds and the total number of rounds."""
    public: Table | None = None
    """Public rows in the private schema's codes, with the columns that both datasets have."""
    device: torch.device = CPU
    """The device on which a model is fitted."""
    cache: Cache | None = None
    """Cache of results computed from public data, shared between jobs."""
    note: Callable[[Mapping[str, float]], None] = lambda found: None
    """Called with figures about the fit for the certificate; they depend on outcomes alone."""

    def measure(self, query: QueryBlock | Single, *, budget: int) -> Measurement:
        """Measure a block, or one query; counts that rules say are zero are set to zero."""
        measured = self.door.measure(query, budget=budget)
        return measured.with_zeros(self.cells.zeros(query) if self.schema.rules else None)

    @cached_property
    def cells(self) -> CellRules:
        """The schema's rules in terms of cells."""
        return CellRules(self.schema)

    @cached_property
    def known_zeros(self) -> list[Measurement]:
        """Tables of which nothing is known but zeros, which cost nothing because no unit can change them."""
        if not self.schema.rules:
            return []
        blocks = compile_blocks(self.cells.known_tables(), self.schema).blocks
        found = ((block, self.cells.zeros(block)) for block in blocks)
        return [
            Measurement(block, np.zeros(block.size), math.inf, zeros)
            for block, zeros in found
            if zeros is not None
        ]

    def with_plan(self, plan: AnyPlan) -> "Job[AnyPlan]":
        """Return the same job with another plan."""
        return cast("Job[AnyPlan]", replace(cast(Any, self), plan=plan))


def measure_once(job: Job[OneShot]) -> list[Measurement]:
    """Measure every candidate with its share of the budget."""
    return [
        job.measure(block, budget=budget)
        for block, budget in zip(job.candidates.blocks, job.plan.measure, strict=True)
    ]
