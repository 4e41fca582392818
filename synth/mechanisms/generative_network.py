"""Generative network: fit a generator to marginals that are measured once.

Paper: Liu, Tang, Vietri, Wu (2023), appendix B.4 (GN); the network of Liu, Vietri, Wu (2021).
Algorithm: as relaxed projection, but the mixture's probabilities are a network's output.
Departures: as relaxed projection.
"""

from functools import partial

from scrim.spec.mechanism import GenerativeNetwork
from synth.mechanisms.base import Job
from synth.mechanisms.one_shot import project_once
from synth.models.generators import GeneratorNetwork
from synth.models.product import ProductMixture
from synth.planning.spending import OneShot


def run(job: Job[OneShot], spec: GenerativeNetwork) -> ProductMixture:
    """Measure all candidates, then train."""
    network = partial(GeneratorNetwork, job.domain, latent=spec.latent, hidden=spec.hidden)
    return project_once(job, spec, network)
