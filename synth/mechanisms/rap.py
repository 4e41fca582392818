"""RAP: the original relaxation, in which a row is a vector of numbers that need not add up.

Paper: Aydore et al. (2021); Liu, Vietri, Wu (2021), appendix B.2.
Algorithm: as RAP-softmax, but the numbers are clipped instead of normalised, so that the fitted
answers belong to no distribution.
Departures: as RAP-softmax. Numbers are clipped to [0, 1] instead of [-1, 1], and what is released is
divided by each attribute's sum, since a release must answer all questions from one distribution; with
negative numbers the relaxed answers are close and the distribution is far off (docs/defaults.md).
"""

from scrim.spec.mechanism import Rap
from synth.mechanisms.adaptive import SMOOTHED, adaptive_measurements
from synth.mechanisms.base import Job
from synth.mechanisms.projection import MixtureLearner
from synth.models.generators import ClippedTable
from synth.models.product import ProductMixture
from synth.planning.spending import Rounds


def run(job: Job[Rounds], spec: Rap) -> ProductMixture:
    """Learn a table of relaxed rows."""
    table = ClippedTable(job.domain, spec.components)
    learner = MixtureLearner(table, job, spec)
    adaptive_measurements(job, spec, learner, noise_power=SMOOTHED)
    return table.released()
