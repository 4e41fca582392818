"""PEP-Pub: entropy projection over the rows of a public dataset.

Paper: Liu, Vietri, Wu (2021), Iterative Methods for Private Synthetic Data, appendix E.
Algorithm: PEP over the distinct public rows, starting from their distribution. It finds the closest
distribution to the public one, in relative entropy, that fits all measurements.
Departures: those of `pep`.
"""

from scrim.spec.mechanism import PepPub
from synth.mechanisms import pep
from synth.mechanisms.base import Job
from synth.models.support import Support
from synth.planning.spending import Rounds
from synth.rules.exclusion import excluding


def run(job: Job[Rounds], spec: PepPub) -> Support:
    """Learn weights of the public rows."""
    assert job.public is not None
    return pep.learn(job, spec, excluding(Support.of(job.public), job.schema))
