"""H-GEM: a generator network of whole groups, trained in rounds on the queries that it answers worst.

Paper: Liu, Wu (2022), section 4.2 and appendix A.2.2, algorithms 3 and 4.
Algorithm: GEM (synth/mechanisms/gem.py). For every noise vector, the network outputs product
distributions of a group's size, of its columns, and of one individual for each place.
Departures: those of GEM. The paper's noise protects one person's own columns; ours follows from the
unit (docs/privacy.md, section 3). Counts are measured, and ratios to the number of individuals are
computed afterwards; that number, the sizes and all single columns are measured before the first round.
"""

from dataclasses import replace

from scrim.spec.mechanism import HierarchicalGem
from scrim.spec.workload.hierarchical import as_linked
from synth.domain import domain_of_groups
from synth.mechanisms.adaptive import SMOOTHED, adaptive_measurements
from synth.mechanisms.base import Job
from synth.mechanisms.gem import GenerativeLearner, new_network
from synth.models.households import Households
from synth.planning.spending import Rounds


def run(job: Job[Rounds], spec: HierarchicalGem) -> Households:
    """Train a generator of groups."""
    schema = as_linked(job.schema)
    of_groups = replace(job, domain=domain_of_groups(schema))
    learner = GenerativeLearner(new_network(of_groups, spec), of_groups, spec)
    adaptive_measurements(of_groups, spec, learner, noise_power=SMOOTHED)
    return Households(schema, learner.released())
