"""GEM+: GEM's generator network under AIM's discipline.

Paper: GEM+ (2025), arXiv 2511.09672; the network of Liu, Vietri, Wu (2021), section 2.2; the selection
and the budget of McKenna, Mullins, Sheldon, Miklau (2022), AIM, arXiv 2201.12677.
Algorithm: measure all one-way marginals; then select by weighted total error beyond the noise, measure,
train on all measurements; halve the noise when a round teaches no more than noise, until the budget is
used up.
Departures: the loss, and when it is small enough, are those of synth/mechanisms/projection.py. Since it
smooths, noise on n cells counts as sqrt(n) of them, in the score and in whether a round taught anything
(AIM: n). A round measures as many marginals as there are columns. The candidates are pairs below what is
asked unless named (docs/defaults.md).
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
