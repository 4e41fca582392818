"""Adaptive Measurements: the loop that every adaptive mechanism shares.

Paper: Liu, Vietri, Wu (2021), Iterative Methods for Private Synthetic Data, algorithm 1.
Departures: whole marginals are selected and measured by default, since all cells of a marginal cost
little more than one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from synth.door import Measurement, weighted_average
from synth.mechanisms.base import Job
from synth.queries import QueryGroup, QuerySet, Single, compile_groups
from synth.spec.mechanism import AdaptiveSpec, Rounds


class Learner(Protocol):
    """A distribution that is brought closer to the measurements in every round."""

    def answer(self, queries: QuerySet) -> NDArray[np.float64]:
        """The distribution's answers, as fractions."""

    def update(self, measurements: Sequence[Measurement], newest: Sequence[Measurement]) -> None:
        """Fit the measurements made so far; `newest` are those of this round."""


def adaptive_measurements(job: Job, spec: AdaptiveSpec, learner: Learner) -> None:
    """T rounds of: select what the learner answers worst, measure it, update the learner."""
    plan = job.plan
    assert isinstance(plan, Rounds)
    per_round = min(plan.per_round, len(job.candidates.candidates(spec.select)))
    measurements = _open(job, plan)
    if measurements:
        learner.update(measurements, measurements)
    for finished in range(plan.rounds):
        job.progress(finished, plan.rounds)
        expected = job.rows * learner.answer(job.candidates)
        chosen = job.door.select(
            job.candidates, expected, budget=plan.select, among=spec.select, k=per_round
        )
        newest = [
            job.door.measure(job.candidates.candidate(index, spec.select), budget=plan.measure)
            for index in chosen
        ]
        measurements += newest
        learner.update(measurements, newest)
    job.progress(plan.rounds, plan.rounds)


def _open(job: Job, plan: Rounds) -> list[Measurement]:
    """Measure the distributions of single columns once, if the plan has a budget for it."""
    opened = compile_groups(plan.opened, job.schema)
    return [job.door.measure(group, budget=plan.opening) for group in opened.groups]


@dataclass(frozen=True)
class Target:
    """What the cells of one marginal should be, as fractions, according to all measurements of it."""

    group: QueryGroup
    values: torch.Tensor
    noise: torch.Tensor
    """Standard deviation of each value; infinite where the cell was never measured."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """Those of the marginal."""
        return self.group.attributes

    @property
    def measured(self) -> torch.Tensor:
        """Which cells have a measurement."""
        return self.noise.isfinite()


def targets(measurements: Sequence[Measurement], rows: int) -> list[Target]:
    """Measurements by marginal; repeated ones averaged."""
    by_query: dict[QueryGroup | Single, list[Measurement]] = {}
    for measurement in measurements:
        by_query.setdefault(measurement.query, []).append(measurement)
    found: dict[QueryGroup, Target] = {}
    for query, repeated in by_query.items():
        group, cells = (
            (query.group, [query.index]) if isinstance(query, Single) else (query, slice(None))
        )
        if group not in found:
            unknown = torch.full((group.size,), torch.inf, dtype=torch.float64)
            found[group] = Target(group, torch.zeros_like(unknown), unknown)
        average = weighted_average(repeated)
        values = torch.as_tensor(average.values, dtype=torch.float64) / rows
        found[group].values[cells] = values
        found[group].noise[cells] = average.sigma / rows
    return list(found.values())


def sweep(wanted: Sequence[Target], step: Callable[[Target], bool], *, passes: int) -> None:
    """Apply a step to every target in turn until none needs it, at most `passes` times over."""
    for _ in range(passes):
        needed = [step(target) for target in wanted]
        if not any(needed):
            return
