"""What a mechanism is given."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar, cast

import torch

from scrim.spec.schema import Schema
from synth.domain import Domain
from synth.door import Door
from synth.measurements import Measurement
from synth.planning.spending import OneShot, Plan
from synth.queries import QuerySet
from synth.table import Table

CPU = torch.device("cpu")


class Cache(Protocol):
    """Remembers results of public computations, by a hash of everything they depend on."""

    def get(self, key: str) -> bytes | None:
        """What was put there, if anything was."""

    def put(self, key: str, content: bytes) -> None:
        """Remember; what is under a key never changes."""


PlanT = TypeVar("PlanT", bound=Plan, covariant=True)
AnyPlan = TypeVar("AnyPlan", bound=Plan)


@dataclass(frozen=True)
class Job(Generic[PlanT]):
    """One run of a mechanism that spends by a plan of its own kind."""

    door: Door
    schema: Schema
    domain: Domain
    queries: QuerySet
    """What is asked."""
    candidates: QuerySet
    """What may be measured."""
    estimated_rows: int
    """The number of rows (of groups, where rows are linked): public, or measured with noise."""
    estimated_rows_sigma: float
    """Standard deviation of that number; 0 where it is public."""
    plan: PlanT
    """How it spends its budget."""
    progress: Callable[[int, int], None]
    """Told how many rounds of how many are done."""
    public: Table | None = None
    """Public rows in the private schema's codes, with the columns that both datasets have."""
    device: torch.device = CPU
    """Where a model is fitted."""
    cache: Cache | None = None
    """Where what was learnt from public data is kept for the next job."""
    note: Callable[[Mapping[str, float]], None] = lambda found: None
    """Told what the certificate should say about the fit: numbers that follow from outcomes alone."""

    def with_plan(self, plan: AnyPlan) -> "Job[AnyPlan]":
        """The same job, spending by that plan."""
        return cast("Job[AnyPlan]", replace(cast(Any, self), plan=plan))


def measure_once(job: Job[OneShot]) -> list[Measurement]:
    """Measure every candidate, each for its share of the budget."""
    return [
        job.door.measure(block, budget=budget)
        for block, budget in zip(job.candidates.blocks, job.plan.measure, strict=True)
    ]
