"""DualQuery: each record is a best response to queries drawn where the earlier records are wrong.

Paper: Gaboardi et al. (2014), Dual Query: Practical Private Query Release for High Dimensional Data;
Liu, Vietri, Wu (2021), appendix B.
Algorithm: in round t, draw s queries with probability proportional to exp(eta * regret of t-1 rounds),
find the record that satisfies most of them, and add its answers to the past. All records are released.
Departures: zCDP prices, s eta^2 (t-1)^2 / (2 n^2) in round t; the number of rounds is fixed from the
budget before the run, and the rate follows from the measured number of rows. It is not "the case
alpha = 1" of Adaptive Measurements: a hedge draw depends on all past rounds, a selection on one.
"""

import numpy as np

from scrim.spec.mechanism import DualQuery
from synth.mechanisms.base import Job
from synth.mechanisms.best_response import BestResponses
from synth.mechanisms.game import draw_critics
from synth.models.support import Support
from synth.planning.spending import Draws


def run(job: Job[Draws], spec: DualQuery) -> Support:
    """Play all rounds; the records have equal weights."""
    responses = BestResponses(job.schema, job.candidates, effort=spec.effort)
    past_answers = np.zeros(job.candidates.size)
    rounds = len(job.plan.prices)
    for past in range(rounds):
        job.progress(past, rounds)
        critics = draw_critics(job, past_answers, past=past, turn=past)
        past_answers += responses.add(critics).answer(job.candidates).values
    job.progress(rounds, rounds)
    job.note(responses.report())
    return responses.released()
