"""Adaptive Measurements: the loop that every adaptive mechanism shares.

Paper: Liu, Vietri, Wu (2021), Iterative Methods for Private Synthetic Data, algorithm 1.
With a score and a schedule of its own: McKenna, Mullins, Sheldon, Miklau (2022), AIM, algorithms 1 and 3.
Departures: whole marginals are selected and measured by default, since all cells of a marginal cost
little more than one. Counts that no unit can move are read before the first round, and never selected.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
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
"""The power of n with which noise on n cells counts after a fit that smooths, such as that of a mixture."""


class Learner(Protocol):
    """A distribution that is brought closer to the measurements in every round."""

    def answer(self, queries: QuerySet) -> NDArray[np.float64]:
        """The distribution's answers, as fractions."""

    def update(self, measurements: Sequence[Measurement], newest: Sequence[Measurement]) -> None:
        """Fit the measurements made so far; `newest` are those of this round."""


def adaptive_measurements(
    job: Job[Rounds],
    spec: AdaptiveSpec,
    learner: Learner,
    *,
    admit: Callable[[QuerySet], QuerySet] = lambda candidates: candidates,
    noise_power: float = 1.0,
) -> None:
    """Rounds of: select what the learner answers worst, measure it, update the learner.

    `admit` tells which of the candidates a round may choose from, by what was measured before.
    `noise_power` is how noise on n cells counts: as n where a fit follows the noise of every cell, as AIM
    assumes; as a smaller power of n where it smooths.
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
            change = job.estimated_rows * np.abs(learner.answer(candidates) - answers)
            of_chosen = np.add.reduceat(change, candidates.candidates(among))[chosen]
            noise = [total_noise(m.sigma, m.query.size, noise_power) for m in newest]
            schedule.note(learnt=of_chosen.sum() > sum(noise))
        finished += 1
    job.progress(finished, finished)


def _open(job: Job[Rounds]) -> list[Measurement]:
    """Read what is public, and measure the distributions of single columns where there is a budget."""
    first = compile_blocks((*job.plan.public, *job.plan.opened), job.schema)
    return [job.door.measure(block, budget=job.plan.opening) for block in first.blocks]


def _without_public(job: Job[Rounds]) -> QuerySet:
    """The candidates of which something is left to learn: those that some unit can move."""
    blocks = job.candidates.blocks
    return QuerySet(g for g in blocks if g.sensitivity(job.door.protection).l2_squared)


def total_noise(sigma: Any, cells: Any, power: float) -> Any:
    """sqrt(2/pi) sigma n: what noise alone makes of the errors of n cells, of one or many marginals.

    With a power below one, what it leaves after a fit that smooths.
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
    """AIM's score: what measuring a candidate would teach about what is asked, beyond its own noise.

    w (total error - total noise), where sigma is what so many units will buy.
    """
    if spec.score != "total_error":
        return None
    starts = candidates.candidates(spec.select)
    block = np.searchsorted(candidates.offsets, starts, side="right") - 1
    # The sum over asked blocks s of |r and s| counts, for each column of r, the blocks that have it.
    asked = Counter(name for s in job.queries.blocks for name in s.attributes)
    # At least one: a score of zero would beat all that are below zero.
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
    """What the cells of one marginal should be, as fractions, according to all measurements of it."""

    block: QueryBlock
    values: torch.Tensor
    noise: torch.Tensor
    """Standard deviation of each value; infinite where the cell was never measured."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """Those of the marginal."""
        return self.block.attributes

    @property
    def measured(self) -> torch.Tensor:
        """Which cells have a measurement."""
        return self.noise.isfinite()


def targets(measurements: Sequence[Measurement], rows: int) -> list[Target]:
    """Measurements by marginal; repeated ones averaged."""
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
    """Apply a step to every target in turn until none needs it, at most `passes` times over."""
    for _ in range(passes):
        needed = [step(target) for target in wanted]
        if not any(needed):
            return
