"""PEP: the distribution of largest entropy that fits all measurements within their noise.

Paper: Liu, Vietri, Wu (2021), section 2.1, algorithm 2 (exponential weights projection).
Algorithm: while some answer is farther than gamma from its measurement, project onto it: scale the
query's cells by a/q(D) and all others by (1-a)/(1-q(D)).
Departures: the violated cells of a marginal are disjoint, so one step projects on all of them (for
one cell it is the paper's step); every step leaves a distribution; measurements are kept away from 0
and 1; the loop is bounded; gamma follows each measurement's own noise.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from synth.door import Measurement
from synth.mechanisms.adaptive import Target, adaptive_measurements, sweep, targets
from synth.mechanisms.base import Job
from synth.models.histogram import Histogram
from synth.queries import QuerySet
from synth.spec.mechanism import Pep

SMALLEST = 1e-12
"""Keeps targets away from 0, from which a multiplicative update never returns."""


def run(job: Job, spec: Pep) -> Histogram:
    """Learn a histogram over the attributes that are asked about or measured."""
    used = (*job.queries.attributes, *job.candidates.attributes)
    learner = EntropyProjection(Histogram.uniform(job.domain.project(used)), spec, job.rows)
    adaptive_measurements(job, spec, learner)
    return learner.histogram


class EntropyProjection:
    """A histogram that is projected onto its measurements in turn."""

    def __init__(self, histogram: Histogram, spec: Pep, rows: int) -> None:
        self.histogram = histogram
        self._spec = spec
        self._rows = rows

    def answer(self, queries: QuerySet) -> NDArray[np.float64]:
        """The histogram's answers."""
        return queries.on_histogram(self.histogram).numpy()

    def update(self, measurements: Sequence[Measurement], newest: Sequence[Measurement]) -> None:
        """Sweep over all measurements until none is violated, or the sweeps are used up."""
        sweep(targets(measurements, self._rows), self._project, passes=self._spec.passes)

    def _project(self, target: Target) -> bool:
        """Project on the violated cells of one marginal; tell whether there were any."""
        answers = self.histogram.marginal(target.attributes).flatten()
        gamma = self._spec.tolerance * target.noise
        nearest = answers.clamp(target.values - gamma, target.values + gamma)
        violated = nearest != answers
        if not violated.any():
            return False
        factor = projection_factor(answers, nearest, violated)
        self.histogram.reweight(target.attributes, answers, factor)
        return True


def projection_factor(
    answers: torch.Tensor, values: torch.Tensor, violated: torch.Tensor
) -> torch.Tensor:
    """What each cell is multiplied by so that the violated cells meet their values."""
    wanted = values.clamp(SMALLEST, 1 - SMALLEST).where(violated, values.new_zeros(()))
    mass, rest = wanted.sum(), answers.where(~violated, answers.new_zeros(())).sum()
    # Noisy values may add up to more than everything; the other cells keep a little.
    wanted = wanted * ((1 - SMALLEST) / mass).clamp(max=1.0)
    others = (1 - wanted.sum()) / rest.clamp(min=SMALLEST)
    return (wanted / answers.clamp(min=SMALLEST**2)).where(violated, others)
