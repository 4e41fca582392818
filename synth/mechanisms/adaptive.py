"""Adaptive Measurements: the loop that every adaptive mechanism shares.

Paper: Liu, Vietri, Wu (2021), Iterative Methods for Private Synthetic Data, algorithm 1.
AIM's score and schedule: McKenna, Mullins, Sheldon, Miklau (2022), AIM, algorithms 1 and 3.
Departures: whole marginals are selected and measured by default, since measuring all cells of a marginal
costs little more than measuring one. Counts that no unit can change are read before the first round and
are never selected.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from scrim.spec.budget import rho_of_units
from scrim.spec.mechanism import AdaptiveSpec
from synth.door import TotalError
from synth.measurements import Measurement, merge_repeated
from synth.mechanisms.base import Job
from synth.mechanisms.schedule import schedule_of
from synth.planning.spending import AnnealedRounds, Rounds
from synth.queries import QueryBlock, QuerySet, Single, compile_blocks

MEAN_NOISE = math.sqrt(2 / math.pi)
"""The mean of |x| for standard normal x."""
SMOOTHED = 0.5
"""Exponent of n for the noise on n cells when the fit smooths the noise, as the fit of a mixture does."""


class Learner(Protocol):
    """A distribution that is fitted to the measurements in every round."""

    def answer(self, queries: QuerySet) -> NDArray[np.float64]:
        """Return the distribution's answers, as fractions."""

    def update(self, measurements: Sequence[Measurement], newest: Sequence[Measurement]) -> None:
        """Fit all measurements so far; `newest` are those of this round."""


def adaptive_measurements(
    job: Job[Rounds],
    spec: AdaptiveSpec,
    learner: Learner,
    *,
    admit: Callable[[QuerySet], QuerySet] = lambda candidates: candidates,
    noise_power: float = 1.0,
) -> None:
    """Run the rounds: select what the learner answers worst, measure it, update the learner.

    `admit` returns the candidates that a round may select from, given what was measured before.
    `noise_power` is the exponent of n for the noise on n cells: 1 if the fit follows the noise of every
    cell, as AIM assumes; less than 1 if the fit smooths.
    """
    plan, among = job.plan, spec.select
    measurements = _open(job)
    if measurements:
        learner.update(measurements, measurements)
    unknown = _without_public(job)
    if not unknown.blocks:
        return
    per_round = min(plan.per_round, len(unknown.candidates(among)))
    schedule = schedule_of(plan, job.door, per_round=per_round)
    finished = 0
    while schedule.rounds_left:
        job.progress(finished, finished + schedule.rounds_left)
        share = schedule.next_share()
        candidates = admit(unknown)
        answers = learner.answer(candidates)
        chosen = job.door.select(
            candidates,
            job.estimated_rows * answers,
            budget=share.select,
            among=among,
            k=min(per_round, len(candidates.candidates(among))),
            score=beyond_noise(candidates, job, spec, share.measure, noise_power=noise_power),
        )
        newest = [
            job.door.measure(candidates.candidate(index, among), budget=share.measure)
            for index in chosen
        ]
        measurements += newest
        learner.update(measurements, newest)
        if isinstance(plan, AnnealedRounds):
            before = dict(zip(candidates.blocks, candidates.split(answers), strict=True))
            change = job.estimated_rows * _change(learner, newest, before)
            noise = [total_noise(m.sigma, m.query.size, noise_power) for m in newest]
            schedule.note(learnt=change > sum(noise))
        finished += 1
    job.progress(finished, finished)


def _open(job: Job[Rounds]) -> list[Measurement]:
    """Read the public counts and, if they have a budget, measure the single-column distributions."""
    first = compile_blocks((*job.plan.public, *job.plan.opened), job.schema)
    return [job.door.measure(block, budget=job.plan.opening) for block in first.blocks]


def _change(
    learner: Learner,
    newest: Sequence[Measurement],
    before: Mapping[QueryBlock, NDArray[np.float64]],
) -> float:
    """Sum of the absolute changes of the learner's answers to the newest measurements' queries."""
    chosen = QuerySet(dict.fromkeys(measurement.block for measurement in newest))
    after = dict(zip(chosen.blocks, chosen.split(learner.answer(chosen)), strict=True))
    total = 0.0
    for measurement in newest:
        change = np.abs(after[measurement.block] - before[measurement.block])
        query = measurement.query
        total += float(change[query.index] if isinstance(query, Single) else change.sum())
    return total


def _without_public(job: Job[Rounds]) -> QuerySet:
    """Return the candidates whose counts are private: those that some unit can change."""
    blocks = job.candidates.blocks
    return QuerySet(g for g in blocks if g.sensitivity(job.door.protection).l2_squared)


def total_noise(sigma: Any, cells: Any, power: float) -> Any:
    """Expected total error of n cells from noise alone: sqrt(2/pi) sigma n, for one marginal or many.

    With a power below one: the part that remains after a fit that smooths.
    """
    return MEAN_NOISE * sigma * cells**power


def beyond_noise(
    candidates: QuerySet,
    job: Job[Rounds],
    spec: AdaptiveSpec,
    measure: int,
    *,
    noise_power: float = 1.0,
) -> TotalError | None:
    """AIM's score: the error of a candidate in excess of the noise of measuring it, weighted by relevance.

    w (total error - total noise), where sigma is the noise scale that `measure` units buy.
    """
    if spec.score != "total_error":
        return None
    starts = candidates.candidates(spec.select)
    block = np.searchsorted(candidates.offsets, starts, side="right") - 1
    # The sum of |r and s| over the workload's blocks s counts, for each column of r, the blocks with it.
    asked = Counter(name for s in job.queries.blocks for name in s.attributes)
    # At least one: with weight zero, a score would be zero and exceed every negative score.
    weights = [max(1, sum(asked[name] for name in r.attributes)) for r in candidates.blocks]
    moved = candidates.sensitivities(spec.select, job.door.protection)
    sigmas = np.sqrt([m.l2_squared / (2 * rho_of_units(measure)) for m in moved])
    sizes = np.diff([*starts, candidates.size])
    return TotalError(
        weights=np.array(weights)[block] // math.gcd(*weights),
        offsets=total_noise(sigmas, sizes, noise_power),
    )


@dataclass(frozen=True)
class Target:
    """The measured cells of one marginal, as fractions, combined over all its measurements."""

    block: QueryBlock
    values: torch.Tensor
    noise: torch.Tensor
    """Standard deviation of each value; infinite where the cell was never measured."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """The marginal's attributes."""
        return self.block.attributes

    @property
    def measured(self) -> torch.Tensor:
        """Mask of the cells that were measured."""
        return self.noise.isfinite()


def targets(measurements: Sequence[Measurement], rows: int) -> list[Target]:
    """Group measurements by marginal; repeated measurements are averaged."""
    found: dict[QueryBlock, Target] = {}
    for average in merge_repeated(measurements):
        query = average.query
        block, cells = (
            (query.block, [query.index]) if isinstance(query, Single) else (query, slice(None))
        )
        if block not in found:
            unknown = torch.full((block.size,), torch.inf, dtype=torch.float64)
            found[block] = Target(block, torch.zeros_like(unknown), unknown)
        values = torch.as_tensor(average.values, dtype=torch.float64) / rows
        found[block].values[cells] = values
        found[block].noise[cells] = average.sigma / rows
    return list(found.values())


def sweep(wanted: Sequence[Target], step: Callable[[Target], bool], *, passes: int) -> None:
    """Apply `step` to every target in turn until none needs it, in at most `passes` passes."""
    for _ in range(passes):
        needed = [step(target) for target in wanted]
        if not any(needed):
            return
