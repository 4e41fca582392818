"""PEP: the distribution of largest entropy that fits all measurements within their noise.

Paper: Liu, Vietri, Wu (2021), section 2.1, algorithm 2 (exponential weights projection).
Algorithm: while some answer is farther than gamma from its measurement, project onto it: scale the
query's cells by a/q(D) and all others by (1-a)/(1-q(D)).
Departures: the cells of a marginal are disjoint, so one step projects onto all of them; every step
results in a distribution; measurements are clamped away from 0 and 1; the loop is bounded. Gamma holds
for a marginal instead of a cell, and follows its noise; a marginal beyond it is projected onto what its
measurement says once noise is discounted. The paper's step meets the noisy value of each cell that is
off, and so fits the noise of the cells with the most noise (docs/mechanisms.md).
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from scrim.spec.mechanism import EntropyProjectionSpec, Pep
from synth.measurements import Measurement
from synth.mechanisms.adaptive import Target, adaptive_measurements, sweep, targets
from synth.mechanisms.base import Job
from synth.models.entropy_projection import project_beyond_noise
from synth.models.histogram import Histogram
from synth.models.support import Support
from synth.planning.spending import Rounds
from synth.queries import QuerySet
from synth.rules.exclusion import excluding

Weights = TypeVar("Weights", Histogram, Support)


def run(job: Job[Rounds], spec: Pep) -> Histogram:
    """Learn a histogram over all attributes in the workload and the candidates."""
    used = (*job.queries.attributes, *job.candidates.attributes)
    return learn(job, spec, excluding(Histogram.uniform(job.domain.project(used)), job.schema))


def learn(job: Job[Rounds], spec: EntropyProjectionSpec, start: Weights) -> Weights:
    """Project a distribution of either kind onto all measurements so far, in every round."""
    learner = EntropyProjection(start, spec, job.estimated_rows)
    adaptive_measurements(job, spec, learner)
    return learner.distribution


class EntropyProjection(Generic[Weights]):
    """A distribution that is projected onto its measurements in turn."""

    def __init__(self, distribution: Weights, spec: EntropyProjectionSpec, rows: int) -> None:
        self.distribution: Weights = distribution
        self._spec = spec
        self._rows = rows

    def answer(self, queries: QuerySet) -> NDArray[np.float64]:
        """The distribution's answers."""
        return self.distribution.answer(queries).values

    def update(self, measurements: Sequence[Measurement], newest: Sequence[Measurement]) -> None:
        """Sweep over all measurements until none is violated, or the sweeps are used up."""
        sweep(targets(measurements, self._rows), self._project, passes=self._spec.passes)

    def _project(self, target: Target) -> bool:
        """Project onto one marginal; return whether it was off by more than its noise."""
        return project_beyond_noise(
            self.distribution,
            target.attributes,
            target.values,
            target.noise,
            tolerance=self._spec.tolerance,
        )
