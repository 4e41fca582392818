"""PMW-Pub: multiplicative weights over the rows of a public dataset.

Paper: Liu et al. (2021), Leveraging Public Data for Practical Private Query Release, algorithm 1.
Algorithm: MWEM over the distinct public rows, starting from their distribution.
Departures: those of `mwem`; also, queries are selected only by the exponential mechanism, because
permute-and-flip costs up to four times as much under zCDP.
"""

from scrim.spec.mechanism import PmwPub
from synth.mechanisms import mwem
from synth.mechanisms.base import Job
from synth.models.support import Support
from synth.planning.spending import Rounds
from synth.rules.exclusion import excluding


def run(job: Job[Rounds], spec: PmwPub) -> Support:
    """Learn weights of the public rows."""
    assert job.public is not None
    return mwem.learn(job, spec, excluding(Support.of(job.public), job.schema))
