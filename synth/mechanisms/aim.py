"""AIM: a graphical model that grows as the budget is spent.

Paper: McKenna, Mullins, Sheldon, Miklau (2022), AIM: An Adaptive and Iterative Mechanism for
Differentially Private Synthetic Data, arXiv 2201.12677, algorithms 1 to 4.
Algorithm: measure all one-way marginals; then, among the marginals below what is asked with which the
model stays within its present size (algorithm 1, line 12), select by weighted total error beyond the
noise (equation 1), measure, and find the distribution of largest entropy that fits all measurements;
halve the noise when a round teaches no more than noise (algorithm 4), until the budget is used up.
Departures: size is counted in cells, and entropy has a weight of its own (synth/graphical/estimation.py).
One-way marginals have a larger share than in the paper, since that weight flattens what is coarse.
The size follows from what was used before a round, without the round's own share: that depends on how
the last fit turned out, and a recorded choice must mean the same on another machine.
"""

from scrim.spec.mechanism import Aim
from synth.mechanisms.adaptive import adaptive_measurements
from synth.mechanisms.base import Job
from synth.mechanisms.graphical import GraphicalLearner
from synth.models.graphical import GraphicalModel
from synth.planning.spending import Rounds
from synth.planning.triangulation import smallest_model
from synth.queries import QuerySet


def run(job: Job[Rounds], spec: Aim) -> GraphicalModel:
    """Learn a graphical model of the attributes that are asked about or measured."""
    learner = GraphicalLearner(job, steps=spec.steps)
    sets = [block.attributes for block in job.candidates.blocks]
    # One candidate always has room: the first round may be too cheap for any.
    smallest = smallest_model(sets, learner.model.domain.size_of)
    before, whole = job.door.used, job.plan.total

    def admit(candidates: QuerySet) -> QuerySet:
        """As large a part of all cells as was used of the budget."""
        used = job.door.used - before
        max_cells = max(smallest, spec.max_cells * used // whole)
        return learner.with_room(candidates, max_cells=max_cells)

    adaptive_measurements(job, spec, learner, admit=admit)
    return learner.model
