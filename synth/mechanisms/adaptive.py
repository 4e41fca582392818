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
    occupied: float = 0.0,
) -> None:
    """Run the rounds: select what the learner answers worst, measure it, update the learner.

    `admit` returns the candidates that a round may select from, given what was measured before.
    `noise_power` is the exponent of n for the noise on n cells: 1 if the fit follows the noise of every
    cell, as AIM assumes; less than 1 if the fit smooths. `occupied` says which cells are counted
    (`noisy_cells`).
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
        expected = job.estimated_rows * learner.answer(candidates)
        score = beyond_noise(
            candidates,
            job,
            spec,
            share.measure,
            noise_power=noise_power,
            occupied=occupied,
            expected=expected,
        )
        chosen = job.door.select(
            candidates,
            expected,
            budget=share.select,
            among=among,
            k=min(per_round, len(candidates.candidates(among))),
            score=score,
        )
        newest = [
            job.measure(candidates.candidate(index, among), budget=share.measure)
            for index in chosen
        ]
        measurements += newest
        learner.update(measurements, newest)
        if isinstance(plan, AnnealedRounds):
            before = dict(zip(candidates.blocks, candidates.split(expected), strict=True))
            change = _change(learner, newest, before, job.estimated_rows)
            noise = _noise(newest, before, noise_power=noise_power, occupied=occupied)
            schedule.note(learnt=change > noise)
        finished += 1
    job.progress(finished, finished)


def _open(job: Job[Rounds]) -> list[Measurement]:
    """Read the public counts and, if they have a budget, measure the single-column distributions."""
    first = compile_blocks((*job.plan.public, *job.plan.opened), job.schema)
    return [job.measure(block, budget=job.plan.opening) for block in first.blocks]


def _change(
    learner: Learner,
    newest: Sequence[Measurement],
    before: Mapping[QueryBlock, NDArray[np.float64]],
    rows: int,
) -> float:
    """Sum of the absolute changes, in rows, of the learner's answers to what was measured."""
    chosen = QuerySet(dict.fromkeys(measurement.block for measurement in newest))
    answers = chosen.split(rows * learner.answer(chosen))
    after = dict(zip(chosen.blocks, answers, strict=True))
    return sum(float(np.abs(_of_query(m, after) - _of_query(m, before)).sum()) for m in newest)


def _noise(
    newest: Sequence[Measurement],
    before: Mapping[QueryBlock, NDArray[np.float64]],
    *,
    noise_power: float,
    occupied: float,
) -> float:
    """The change, in rows, that is expected from the noise of the measurements alone."""
    cells = [noisy_cells(_of_query(m, before), m.sigma, occupied).sum() for m in newest]
    pairs = zip(newest, cells, strict=True)
    return float(sum(total_noise(m.sigma, n, noise_power) for m, n in pairs))


def _of_query(
    measurement: Measurement, counts: Mapping[QueryBlock, NDArray[np.float64]]
) -> NDArray[np.float64]:
    """The counts of a measurement's queries, among those of whole blocks."""
    query = measurement.query
    of_block = counts[measurement.block]
    return of_block[[query.index]] if isinstance(query, Single) else of_block


def _without_public(job: Job[Rounds]) -> QuerySet:
    """Return the candidates whose counts are private: those that some unit can change."""
    blocks = job.candidates.blocks
    return QuerySet(g for g in blocks if g.sensitivity(job.door.protection).l2_squared)


def total_noise(sigma: Any, cells: Any, power: float) -> Any:
    """Expected total error of n cells from noise alone: sqrt(2/pi) sigma n, for one marginal or many.

    With a power below one: the part that remains after a fit that smooths.
    """
    return MEAN_NOISE * sigma * cells**power


def noisy_cells(expected: NDArray[np.float64], sigma: Any, occupied: float) -> NDArray[np.float64]:
    """How far each cell counts as a noisy one: x / (x + occupied sigma), if the model expects x rows.

    A fit that multiplies the model's cells hardly moves an empty one, whatever its measurement.
    """
    if not occupied:
        return np.ones_like(expected)
    counts = np.maximum(expected, 0.0)
    return np.asarray(counts / (counts + occupied * sigma))


def beyond_noise(
    candidates: QuerySet,
    job: Job[Rounds],
    spec: AdaptiveSpec,
    measure: int,
    *,
    expected: NDArray[np.float64],
    noise_power: float = 1.0,
    occupied: float = 0.0,
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
    noisy = noisy_cells(expected, np.repeat(sigmas, sizes), occupied)
    return TotalError(
        weights=np.array(weights)[block] // math.gcd(*weights),
        offsets=total_noise(sigmas, np.add.reduceat(noisy, starts), noise_power),
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
        found[block].noise[cells] = torch.as_tensor(average.noise, dtype=torch.float64) / rows
    return list(found.values())


def sweep(wanted: Sequence[Target], step: Callable[[Target], bool], *, passes: int) -> None:
    """Apply `step` to every target in turn until none needs it, in at most `passes` passes."""
    for _ in range(passes):
        needed = [step(target) for target in wanted]
        if not any(needed):
            return
