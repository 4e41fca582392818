"""Fitting a graphical model to measurements, within a limit of cells; shared by pgm_em and aim."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from synth.domain import Domain
from synth.graphical.estimation import Evidence, estimate
from synth.graphical.junction_tree import JunctionTree
from synth.measurements import EXACT, Measurement
from synth.mechanisms.adaptive import Target, targets
from synth.mechanisms.base import Job
from synth.models.graphical import GraphicalModel
from synth.planning.spending import Plan
from synth.planning.triangulation import Attributes, has_room
from synth.queries import QuerySet


class GraphicalLearner:
    """A graphical model that is fitted to all measurements, starting from the last fit."""

    def __init__(self, job: Job[Plan], *, steps: int) -> None:
        """Start with a uniform model of all attributes in the workload and the candidates."""
        names = (*job.queries.attributes, *job.candidates.attributes)
        self.model = GraphicalModel(job.domain.project(names), {})
        self._rows = job.estimated_rows
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

    def with_room(self, candidates: QuerySet, *, max_cells: int) -> QuerySet:
        """Return the candidates that can each be added without exceeding `max_cells`.

        Depends on what was measured so far, not on the measured values.
        """
        return QuerySet(g for g in candidates.blocks if self._has_room(g.attributes, max_cells))

    def _has_room(self, attributes: Attributes, max_cells: int) -> bool:
        key = attributes, max_cells
        if key not in self._room:
            sets, sizes = [*self.model.potentials, attributes], self.model.domain.size_of
            self._room[key] = has_room(sets, sizes, max_cells=max_cells)
        return self._room[key]


def _evidence(target: Target, domain: Domain, rows: int) -> Evidence:
    shape = domain.project(target.attributes).sizes
    noise = target.noise.clamp(min=EXACT / rows)
    return Evidence(target.attributes, target.values.reshape(shape), noise.reshape(shape))
