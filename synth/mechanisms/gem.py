"""GEM: a generator network, trained in rounds on the queries that it answers worst.

Paper: Liu, Vietri, Wu (2021), section 2.2, appendix D, algorithms 3 and 4.
Algorithm: a network turns fixed noise vectors into product distributions; each round selects what
their mixture answers worst, measures it and trains on all measurements so far.
Departures: whole marginals are selected by default; one-way marginals are measured before the first
round; the default loss is that of synth/mechanisms/projection.py. With `loss: absolute` it is the
paper's, with its threshold gamma: half of a moving average of the largest errors on the selected
queries, computed from noisy measurements (the authors' code uses the true errors).
"""

from collections.abc import Collection, Sequence

import torch

from scrim.spec.mechanism import GenerativeSpec
from synth.measurements import Measurement
from synth.mechanisms.adaptive import SMOOTHED, adaptive_measurements
from synth.mechanisms.base import Job
from synth.mechanisms.projection import AboveThreshold, FitTargets, MixtureLearner, Objective
from synth.models.generators import GeneratorNetwork
from synth.models.product import ProductMixture
from synth.planning.spending import Rounds

ERROR_MEMORY = 0.5
"""The paper's beta for the moving average of the largest errors (appendix D.3)."""
WEIGHT_MEMORY = 0.9
"""Beta of the moving average of the weights (appendix D.2 leaves it open)."""


def run(job: Job[Rounds], spec: GenerativeSpec) -> ProductMixture:
    """Train a generator."""
    learner = GenerativeLearner(new_network(job, spec), job, spec)
    adaptive_measurements(job, spec, learner, noise_power=SMOOTHED)
    return learner.released()


def new_network(job: Job[Rounds], spec: GenerativeSpec) -> GeneratorNetwork:
    """Return an untrained network."""
    return GeneratorNetwork(job.domain, spec.components, latent=spec.latent, hidden=spec.hidden)


class GenerativeLearner(MixtureLearner):
    """The network, its stopping threshold and the moving average of its weights."""

    def __init__(
        self,
        network: GeneratorNetwork,
        job: Job[Rounds],
        spec: GenerativeSpec,
        *,
        known: Collection[str] = (),
    ) -> None:
        super().__init__(network, job, spec, known=known)
        self._spec = spec
        self._rounds = job.plan.rounds
        self._round = 0
        self._largest_error: float | None = None
        self._average: dict[str, torch.Tensor] | None = None

    def update(self, measurements: Sequence[Measurement], newest: Sequence[Measurement]) -> None:
        """Run algorithm 4; in the second half of the rounds, update the moving average."""
        self._note_largest_error(newest)
        super().update(measurements, newest)
        self._round += 1
        if self._spec.average and 2 * self._round >= self._rounds:
            self._add_to_average()

    def released(self) -> ProductMixture:
        """Return the mixture for the averaged weights, or for the last ones if none were averaged."""
        if self._average is not None:
            self.generator.load_state_dict(self._average)
        return self.generator.released()

    def objective(self, measured: FitTargets) -> Objective:
        """Return our objective or the paper's, as the spec says."""
        if self._spec.loss == "squared":
            return super().objective(measured)
        assert self._largest_error is not None
        return AboveThreshold(measured, gamma=self._largest_error / 2)

    def _note_largest_error(self, newest: Sequence[Measurement]) -> None:
        """Update the moving average of the largest error (appendix D.3) from noisy measurements."""
        measured = FitTargets.of(newest, self.rows, self.device)
        with torch.no_grad():
            error = (measured.answers(self.generator.fitted()) - measured.values).abs().max().item()
        before = error if self._largest_error is None else self._largest_error
        self._largest_error = ERROR_MEMORY * before + (1 - ERROR_MEMORY) * error

    def _add_to_average(self) -> None:
        """Appendix D.2: theta_out <- beta theta_out + (1 - beta) theta."""
        weights = {name: w.detach().clone() for name, w in self.generator.state_dict().items()}
        if self._average is None:
            self._average = weights
            return
        for name, average in self._average.items():
            average.lerp_(weights[name], 1 - WEIGHT_MEMORY)
