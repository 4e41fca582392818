"""FEM: each record is a perturbed best response to all queries selected so far.

Paper: Vietri, Tian, Bun, Steinke, Wu (2020), New Oracle-Efficient Algorithms for Private Synthetic Data
Release, algorithm 1 (FEM); Liu, Vietri, Wu (2021), appendix B.
Algorithm: the data player follows the perturbed leader: each of a round's s records is the best one for
all critics so far plus fresh exponential noise on its codes. The exponential mechanism then selects the
critics of the next round, queries or negations. All records are released.
Departures: the exponential mechanism compares the truth with all records so far, which are released, and
not with the s records of the newest round, whose sampling error it would mostly select
(docs/defaults.md). Selecting among queries and negations is a hedge draw over one round.
The exponential noise is part of the search: privacy does not depend on it.
"""

import numpy as np
from numpy.typing import NDArray

from scrim.spec.mechanism import Fem
from synth.mechanisms.base import Job
from synth.mechanisms.best_response import SCALE, BestResponses
from synth.mechanisms.game import Critics, draw_critics
from synth.models.support import Support
from synth.planning.spending import Draws


def run(job: Job[Draws], spec: Fem) -> Support:
    """Play all rounds; the records have equal weights."""
    responses = BestResponses(job.schema, job.candidates, effort=spec.effort)
    rounds = len(job.plan.prices)
    critics: Critics = {}
    answers = np.zeros(job.candidates.size)
    for turn in range(rounds):
        job.progress(turn, rounds)
        answers += _respond(job, spec, responses, critics)
        for query, weight in draw_critics(job, answers / (turn + 1), past=1, turn=turn).items():
            critics[query] = critics.get(query, 0) + weight
    _respond(job, spec, responses, critics)
    job.progress(rounds, rounds)
    job.note(responses.report())
    return responses.released()


def _respond(
    job: Job[Draws], spec: Fem, responses: BestResponses, critics: Critics
) -> NDArray[np.float64]:
    """Add a round's records, each with its own perturbation, and return their mean answers."""
    found = np.zeros(job.candidates.size)
    for _ in range(spec.samples):
        perturbation = {
            name: np.rint(responses.rng.exponential(spec.perturbation * SCALE, size)).astype(
                np.int64
            )
            for name, size in job.domain.size_of.items()
        }
        found += responses.add(critics, perturbation).answer(job.candidates).values
    return found / spec.samples
