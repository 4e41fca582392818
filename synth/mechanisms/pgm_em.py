"""PGM+EM: a graphical model, taught round by round where it is worst.

Paper: McKenna, Sheldon, Miklau (2019), Graphical-model based estimation and inference for
differential privacy; Liu, Tang, Vietri, Wu (2023), section 5.3 (PGM+EM).
Algorithm: each round selects the marginal that the model answers worst, measures it, and finds the
distribution of largest entropy that fits all measurements so far (synth/graphical/estimation.py).
Departures: a marginal with which the model would have more than `max_cells` cells is no candidate,
so the size is bounded before anything is built; one-way marginals are measured before the first
round, and pairs are selected from by default (docs/defaults.md).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from synth.domain import Domain
from synth.door import Measurement
from synth.graphical.estimation import Evidence, estimate
from synth.graphical.junction_tree import JunctionTree
from synth.mechanisms.adaptive import Target, adaptive_measurements, targets
from synth.mechanisms.base import Job
from synth.models.graphical import GraphicalModel
from synth.queries import QuerySet
from synth.spec.mechanism import PgmEm
from synth.spec.triangulation import Attributes, has_room


def run(job: Job, spec: PgmEm) -> GraphicalModel:
    """Learn a graphical model of the attributes that are asked about or measured."""
    domain = job.domain.project((*job.queries.attributes, *job.candidates.attributes))
    learner = GraphicalLearner(domain, job.rows, steps=spec.steps)

    def admit(candidates: QuerySet) -> QuerySet:
        fitting = [g for g in candidates.groups if learner.has_room(g.attributes, spec.max_cells)]
        return QuerySet(fitting)

    adaptive_measurements(job, spec, learner, admit=admit)
    return learner.model


class GraphicalLearner:
    """A graphical model that is fitted to all measurements, starting from the last fit."""

    def __init__(self, domain: Domain, rows: int, *, steps: int) -> None:
        self.model = GraphicalModel(domain, {})
        self._rows = rows
        self._steps = steps
        self._room: dict[tuple[Attributes, int], bool] = {}

    def answer(self, queries: QuerySet) -> NDArray[np.float64]:
        """The model's answers."""
        return self.model.answer(queries).values

    def update(self, measurements: Sequence[Measurement], newest: Sequence[Measurement]) -> None:
        """Fit all measurements so far."""
        evidence = [
            _evidence(target, self.model.domain, self._rows)
            for target in targets(measurements, self._rows)
        ]
        tree = JunctionTree.of([each.attributes for each in evidence], self.model.domain)
        potentials = estimate(tree, evidence, start=self.model.potentials, steps=self._steps)
        if potentials.keys() != self.model.potentials.keys():
            self._room.clear()
        self.model = GraphicalModel(self.model.domain, potentials)

    def has_room(self, attributes: Attributes, max_cells: int) -> bool:
        """Whether the model stays within so many cells if one more marginal is measured.

        Follows from what was measured so far, not from the outcomes' values.
        """
        key = attributes, max_cells
        if key not in self._room:
            sets, sizes = [*self.model.potentials, attributes], self.model.domain.size_of
            self._room[key] = has_room(sets, sizes, max_cells=max_cells)
        return self._room[key]


def _evidence(target: Target, domain: Domain, rows: int) -> Evidence:
    shape = domain.project(target.attributes).sizes
    # A public count has no noise; it is met to within a thousandth of a row.
    noise = target.noise.clamp(min=1e-3 / rows)
    return Evidence(target.attributes, target.values.reshape(shape), noise.reshape(shape))
