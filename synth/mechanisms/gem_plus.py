"""GEM+: GEM's generator network with AIM's selection and budget schedule.

Paper: GEM+ (2025), arXiv 2511.09672; the network of Liu, Vietri, Wu (2021), section 2.2; the selection
and the budget of McKenna, Mullins, Sheldon, Miklau (2022), AIM, arXiv 2201.12677.
Algorithm: measure all one-way marginals. Then, in each round, select by weighted total error in excess of
the noise, measure, and train on all measurements. Halve the noise when a round changes the model no more
than noise would, until the budget is spent.
Departures: the loss and its stopping rule are those of synth/mechanisms/projection.py. Because the fit
smooths, noise on n cells counts with sqrt(n), both in the score and in the test of whether a round
changed the model (AIM: n). A round measures as many marginals as there are columns. By default the
candidates are the pairs contained in the workload's marginals (docs/defaults.md).
"""

from scrim.spec.mechanism import GemPlus
from synth.mechanisms.adaptive import SMOOTHED, adaptive_measurements
from synth.mechanisms.base import Job
from synth.mechanisms.projection import MixtureLearner
from synth.models.generators import GeneratorNetwork
from synth.models.product import ProductMixture
from synth.planning.spending import Rounds


def run(job: Job[Rounds], spec: GemPlus) -> ProductMixture:
    """Train a generator."""
    network = GeneratorNetwork(job.domain, spec.components, latent=spec.latent, hidden=spec.hidden)
    learner = MixtureLearner(network, job, spec)
    adaptive_measurements(job, spec, learner, noise_power=SMOOTHED)
    return network.released()
