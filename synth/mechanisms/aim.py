"""AIM: a graphical model that grows as the budget is spent.

Paper: McKenna, Mullins, Sheldon, Miklau (2022), AIM: An Adaptive and Iterative Mechanism for
Differentially Private Synthetic Data, arXiv 2201.12677, algorithms 1 to 4.
Algorithm: measure all one-way marginals. Then, in each round, take as candidates the marginals contained
in the workload's with which the model stays within its size limit (algorithm 1, line 12); select one by
weighted total error in excess of the noise (equation 1); measure it; and find the distribution of largest
entropy that fits all measurements. Halve the noise when a round changes the model no more than noise
would (algorithm 4), until the budget is spent.
Departures: size is counted in cells. Entropy has its own weight and is relative to the product of the
one-way marginals (synth/graphical/estimation.py), which therefore get a larger share than in the paper.
The noise of a marginal is counted for the cells in which the model expects rows, not for all cells:
with that entropy, the fit hardly follows the noise of empty cells (docs/defaults.md). Fits between
rounds are coarse; the last one is exact.
The size limit follows from the budget used before a round, without the round's own share: that share
depends on the last fit, and a recorded selection must have the same candidates on another machine.
"""

from scrim.spec.mechanism import Aim
from synth.mechanisms.adaptive import adaptive_measurements
from synth.mechanisms.base import Job
from synth.mechanisms.graphical import GraphicalLearner
from synth.models.graphical import GraphicalModel
from synth.planning.spending import Rounds
from synth.planning.triangulation import smallest_model
from synth.queries import QuerySet

OCCUPIED = 0.2
"""A cell in which the model expects this share of the noise scale counts as half a noisy cell."""


def run(job: Job[Rounds], spec: Aim) -> GraphicalModel:
    """Learn a graphical model of all attributes in the workload and the candidates."""
    learner = GraphicalLearner(job, steps=spec.steps, max_cells=spec.max_cells)
    sets = [block.attributes for block in job.candidates.blocks]
    # The smallest candidate always fits, even if the share of the first rounds would not allow it.
    smallest = smallest_model(sets, learner.model.domain.size_of)
    before, whole = job.door.used, job.plan.total

    def admit(candidates: QuerySet) -> QuerySet:
        """Allow the same share of `max_cells` as the share of the budget used so far."""
        used = job.door.used - before
        max_cells = max(smallest, spec.max_cells * used // whole)
        return learner.with_room(candidates, max_cells=max_cells)

    adaptive_measurements(job, spec, learner, admit=admit, occupied=OCCUPIED)
    return learner.finish()
