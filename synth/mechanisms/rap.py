"""RAP: the original relaxation, in which the numbers of a row need not sum to one.

Paper: Aydore et al. (2021); Liu, Vietri, Wu (2021), appendix B.2.
Algorithm: as RAP-softmax, but the numbers are clipped instead of normalised, so the fitted answers
are not those of a distribution.
Departures: as RAP-softmax. Numbers are clipped to [0, 1] instead of [-1, 1]. The released numbers are
divided by each attribute's sum, because a release must answer all queries from one distribution. With
negative numbers, the relaxed answers are close but that distribution is far off (docs/defaults.md).
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
