"""RAP-softmax: relaxed projection inside the adaptive loop.

Paper: Liu, Vietri, Wu (2021), appendix B.2 (the end), after Aydore et al. (2021).
Algorithm: select what the mixture answers worst, measure it, fit the logits to all measurements.
Departures: as relaxed projection; one-way marginals are measured before the first round.
"""

from scrim.spec.mechanism import RapSoftmax
from synth.mechanisms.adaptive import SMOOTHED, adaptive_measurements
from synth.mechanisms.base import Job
from synth.mechanisms.projection import MixtureLearner
from synth.models.generators import SoftmaxTable
from synth.models.product import ProductMixture
from synth.planning.spending import Rounds


def run(job: Job[Rounds], spec: RapSoftmax) -> ProductMixture:
    """Learn a table of logits."""
    table = SoftmaxTable(job.domain, spec.components)
    learner = MixtureLearner(table, job, spec)
    adaptive_measurements(job, spec, learner, noise_power=SMOOTHED)
    return table.released()
