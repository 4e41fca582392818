"""PGM+EM: a graphical model, fitted in rounds to the queries that it answers worst.

Paper: McKenna, Sheldon, Miklau (2019), Graphical-model based estimation and inference for
differential privacy; Liu, Tang, Vietri, Wu (2023), section 5.3 (PGM+EM).
Algorithm: each round selects the marginal that the model answers worst, measures it, and finds the
distribution of largest entropy that fits all measurements so far (synth/graphical/estimation.py).
Departures: a marginal with which the model would have more than `max_cells` cells is not a candidate,
so the size is bounded before anything is built; one-way marginals are measured before the first
round; by default the candidates are pairs (docs/defaults.md).
"""

from scrim.spec.mechanism import PgmEm
from synth.mechanisms.adaptive import SMOOTHED, adaptive_measurements
from synth.mechanisms.base import Job
from synth.mechanisms.graphical import GraphicalLearner
from synth.models.graphical import GraphicalModel
from synth.planning.spending import Rounds
from synth.queries import QuerySet


def run(job: Job[Rounds], spec: PgmEm) -> GraphicalModel:
    """Learn a graphical model of all attributes in the workload and the candidates."""
    learner = GraphicalLearner(job, steps=spec.steps, max_cells=spec.max_cells)

    def admit(candidates: QuerySet) -> QuerySet:
        return learner.with_room(candidates, max_cells=spec.max_cells)

    adaptive_measurements(job, spec, learner, admit=admit, noise_power=SMOOTHED)
    return learner.finish()
