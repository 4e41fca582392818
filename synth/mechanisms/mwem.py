"""MWEM: multiplicative weights over the whole domain.

Paper: Hardt, Ligett, McSherry (2012); Liu, Vietri, Wu (2021), appendix B.2 and B.3.
Algorithm: D(x) <- D(x) exp((a_q - q(D)) q(x) / 2), normalised, for each measured query q; with past
measurements, several passes over all of them in every round; the last or the average distribution.
Departures: the sign in B.2 and B.3 is wrong (weight must grow where the measurement exceeds the
model); the cells of a marginal are disjoint, so one step updates all of them at once; a measurement
that the model meets within its noise causes no update.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from scrim.spec.mechanism import MultiplicativeWeightsSpec, Mwem
from synth.measurements import Measurement
from synth.mechanisms.adaptive import Target, adaptive_measurements, sweep, targets
from synth.mechanisms.base import Job
from synth.models.group_types import GroupTypes
from synth.models.histogram import Histogram
from synth.models.support import Support
from synth.planning.spending import Rounds
from synth.queries import QuerySet
from synth.rules.exclusion import excluding

Weights = TypeVar("Weights", Histogram, Support)
AnyWeights = TypeVar("AnyWeights", Histogram, Support, GroupTypes)


def run(job: Job[Rounds], spec: Mwem) -> Histogram:
    """Learn a histogram over all attributes in the workload and the candidates."""
    used = (*job.queries.attributes, *job.candidates.attributes)
    return learn(job, spec, excluding(Histogram.uniform(job.domain.project(used)), job.schema))


def learn(job: Job[Rounds], spec: MultiplicativeWeightsSpec, start: Weights) -> Weights:
    """Reweight a distribution of either kind in rounds; return the last or the average one."""
    return run_rounds(job, spec, MultiplicativeWeights(start, spec, job.estimated_rows))


def run_rounds(
    job: Job[Rounds], spec: MultiplicativeWeightsSpec, learner: "Reweighting[AnyWeights]"
) -> AnyWeights:
    """Run all rounds; return the learner's last or average distribution."""
    adaptive_measurements(job, spec, learner)
    return learner.average() if spec.output == "average" else learner.distribution


class Reweighting(ABC, Generic[AnyWeights]):
    """The distribution and the sum of its past states."""

    def __init__(
        self, distribution: AnyWeights, spec: MultiplicativeWeightsSpec, rows: int
    ) -> None:
        self.distribution: AnyWeights = distribution
        self._spec = spec
        self._rows = rows
        self._sum = distribution.weights.new_zeros(distribution.weights.shape)
        self._rounds = 0

    def answer(self, queries: QuerySet) -> NDArray[np.float64]:
        """The distribution's answers."""
        return self.distribution.answer(queries).values

    def update(self, measurements: Sequence[Measurement], newest: Sequence[Measurement]) -> None:
        """Reweight by all measurements, or by the newest ones if the spec says so."""
        wanted = targets(measurements if self._spec.past_measurements else newest, self._rows)
        sweep(wanted, self.step, passes=self._spec.passes)
        self._sum += self.distribution.weights
        self._rounds += 1

    def average(self) -> AnyWeights:
        """The mean of the distributions after each round."""
        return replace(self.distribution, weights=self._sum / self._rounds)

    @abstractmethod
    def step(self, target: Target) -> bool:
        """Move the answers towards one target; return whether they were off by more than its noise."""


class MultiplicativeWeights(Reweighting[Weights]):
    """Multiplicative weights for distributions in which each row is in one cell of a marginal."""

    def step(self, target: Target) -> bool:
        """Equation (3) of appendix B.3, with the sign corrected, on all measured cells at once."""
        answers = self.distribution.marginal(target.attributes).flatten()
        # Factors cannot change a cell of weight zero; a support has such cells where it has no row.
        movable = target.measured & (answers > 0)
        # No error of a fraction exceeds one, however large the noise is.
        error = (target.values - answers).clamp(-1, 1).where(movable, 0.0)
        if not (error.abs() > target.noise).any():
            return False
        self.distribution.reweight(target.attributes, answers, (error / 2).exp())
        return True
