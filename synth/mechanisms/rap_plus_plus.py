"""RAP++: rows moved by gradients through soft thresholds that harden step by step.

Paper: Vietri et al. (2022), Private synthetic data for multitask learning and marginal queries; Liu,
Tang, Vietri, Wu (2023), appendix B.3, algorithm 3, inside its algorithm 2.
Algorithm: each round selects what the rows answer worst, measures it, and moves the rows by the
gradients of sigmoid-relaxed answers; the sigmoids' inverse temperature doubles from step to step.
Departures: the distance is that of synth/mechanisms/projection.py, to all measurements so far; the
steps at one temperature end when the distance no longer falls or is within the noise. Categories are
drawn from their probabilities, several times for each row, before queries are answered.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from scrim.spec.mechanism import RapPlusPlus
from synth.measurements import Measurement
from synth.mechanisms.adaptive import adaptive_measurements
from synth.mechanisms.base import Job
from synth.mechanisms.projection import FitTargets, NoiseBand
from synth.models.relaxed_table import RelaxedTable
from synth.models.rows import Rows
from synth.planning.rap_plus_plus import ROW_COPIES
from synth.planning.spending import Rounds
from synth.queries import QuerySet

PATIENCE = 20
"""Steps without progress after which the next temperature is used."""
PROGRESS = 0.999
"""A loss below this share of the smallest previous loss counts as progress."""


def run(job: Job[Rounds], spec: RapPlusPlus) -> Rows:
    """Fit relaxed rows, then draw rows of declared values from them."""
    learner = RelaxedLearner(job, spec)
    adaptive_measurements(job, spec, learner)
    return learner.table.harden(ROW_COPIES)


class RelaxedLearner:
    """Relaxed rows, and the optimiser that moves them."""

    def __init__(self, job: Job[Rounds], spec: RapPlusPlus) -> None:
        self.table = RelaxedTable(job.schema, spec.rows).to(job.device)
        self._rows = job.estimated_rows
        self._device = job.device
        self._spec = spec
        self._zeros = job.known_zeros

    def answer(self, queries: QuerySet) -> NDArray[np.float64]:
        """Return the answers of the rows with declared values, which are the ones released."""
        return self.table.harden(ROW_COPIES).answer(queries).values

    def update(self, measurements: Sequence[Measurement], newest: Sequence[Measurement]) -> None:
        """Run algorithm 3, from the softest sigmoids to the hardest."""
        known = [*self._zeros, *measurements]
        measured = FitTargets.of(known, self._rows, self._device)
        objective = NoiseBand(measured)
        temperature = self._spec.first_temperature
        while temperature <= self._spec.last_temperature:
            self._descend(measured, objective, temperature)
            temperature *= 2

    def _descend(self, measured: FitTargets, objective: NoiseBand, temperature: float) -> None:
        """Take steps at one temperature until they no longer help."""
        optimiser = torch.optim.Adam(self.table.parameters(), lr=self._spec.learning_rate)
        smallest, since = float("inf"), 0
        for _ in range(self._spec.steps):
            loss = objective.loss(measured.on_relaxed(self.table(temperature)))
            if loss is None:
                return
            since = 0 if loss.item() < PROGRESS * smallest else since + 1
            smallest = min(smallest, loss.item())
            if since > PATIENCE:
                return
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            self.table.constrain()
