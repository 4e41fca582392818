"""Fitting a graphical model to measurements, within a limit of cells; shared by pgm_em and aim."""

from collections.abc import Sequence, Set
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from synth.domain import Domain
from synth.graphical.estimation import CLOSE, NOTHING, Evidence, add, estimate
from synth.graphical.junction_tree import JunctionTree
from synth.graphical.propagation import Tables
from synth.measurements import EXACT, Measurement
from synth.mechanisms.adaptive import Target, targets
from synth.mechanisms.base import Job
from synth.mechanisms.exclusions import Exclusions
from synth.models.graphical import GraphicalModel
from synth.planning.spending import Plan
from synth.planning.triangulation import Attributes, has_room
from synth.queries import QuerySet

Pair = tuple[str, ...]

BASE_WEIGHT = 0.1
"""Weight of entropy in the base, the product of the single columns."""
BETWEEN_ROUNDS = 0.3
"""How close the fits between rounds are; the last one is closer (synth/graphical/estimation.py)."""
LAST_STEPS = 5
"""How many times as many steps the last fit may take."""


class GraphicalLearner:
    """A graphical model that is fitted to all measurements, starting from the last fit.

    Its base is the product of the single columns that were measured before the first round.
    """

    def __init__(self, job: Job[Plan], *, steps: int, max_cells: int) -> None:
        """Start with a uniform model of all attributes in the workload and the candidates.

        `max_cells` limits the tables of rules that the last fit may add.
        """
        names = (*job.queries.attributes, *job.candidates.attributes)
        self.model = GraphicalModel(job.domain.project(names), {})
        self._rows = job.estimated_rows
        self._steps = steps
        self._base: Tables = {}
        self._fit = NOTHING
        self._evidence: Sequence[Evidence] = []
        self._room: dict[tuple[frozenset[Pair], int], bool] = {}
        self._excluded = Exclusions(job.cells if job.schema.rules else None)
        self._zeros = [zeros.block.attributes for zeros in job.known_zeros]
        self._max_cells = max_cells

    def answer(self, queries: QuerySet) -> NDArray[np.float64]:
        """The model's answers."""
        return self.model.answer(queries).values

    def update(self, measurements: Sequence[Measurement], newest: Sequence[Measurement]) -> None:
        """Fit all measurements so far, closely enough for the next selection."""
        evidence = [
            self._excluded.without(_evidence(target, self.model.domain, self._rows))
            for target in targets(measurements, self._rows)
        ]
        if not self._evidence:
            self._base = _product(evidence, self.model.domain, self._steps)
        self._evidence = evidence
        self._refit(steps=self._steps, close=BETWEEN_ROUNDS)

    def finish(self) -> GraphicalModel:
        """Fit all measurements closely, exclude what rules exclude, and return the model."""
        if self._evidence:
            self._refit(steps=LAST_STEPS * self._steps, close=CLOSE, rules=self._tables_with_room())
        return self.model

    def _tables_with_room(self) -> list[Attributes]:
        """The tables of rules that the model can contain within its limit of cells."""
        sizes = self.model.domain.size_of
        sets: list[Attributes] = [each.attributes for each in self._evidence]
        added: list[Attributes] = []
        for wanted in self._zeros:
            names = self.model.domain.project(wanted).names
            if names and has_room([*sets, *added, names], sizes, max_cells=self._max_cells):
                added.append(names)
        return added

    def _refit(self, *, steps: int, close: float, rules: Sequence[Attributes] = ()) -> None:
        domain = self.model.domain
        sets = [*(each.attributes for each in self._evidence), *rules]
        base = add(self._base, self._excluded.potentials(sets))
        tree = JunctionTree.of(sets, domain)
        self._fit = estimate(
            tree, self._evidence, base=base, start=self._fit, steps=steps, close=close
        )
        potentials = add(base, self._fit.potentials)
        if potentials.keys() != self.model.potentials.keys():
            self._room.clear()
        self.model = GraphicalModel(domain, potentials)

    def with_room(self, candidates: QuerySet, *, max_cells: int) -> QuerySet:
        """Return the candidates that can each be added without exceeding `max_cells`.

        Depends on what was measured so far, not on the measured values.
        """
        joined = {pair for names in self.model.potentials for pair in combinations(names, 2)}
        return QuerySet(
            g for g in candidates.blocks if self._has_room(g.attributes, joined, max_cells)
        )

    def _has_room(self, attributes: Attributes, joined: Set[Pair], max_cells: int) -> bool:
        """The size follows from the pairs that the model joins; many candidates add the same ones."""
        added = frozenset(combinations(self.model.domain.project(attributes).names, 2)) - joined
        key = added, max_cells
        if key not in self._room:
            sets, sizes = [*joined, *added], self.model.domain.size_of
            self._room[key] = has_room(sets, sizes, max_cells=max_cells)
        return self._room[key]


def _product(evidence: Sequence[Evidence], domain: Domain, steps: int) -> Tables:
    """Potentials of the product of all single columns that were measured completely."""
    single = [e for e in evidence if len(e.attributes) == 1 and e.noise.isfinite().all()]
    if not single:
        return {}
    tree = JunctionTree.of([each.attributes for each in single], domain)
    return estimate(tree, single, steps=steps, close=CLOSE / 10, weight=BASE_WEIGHT).potentials


def _evidence(target: Target, domain: Domain, rows: int) -> Evidence:
    shape = domain.project(target.attributes).sizes
    noise = target.noise.clamp(min=EXACT / rows)
    return Evidence(target.attributes, target.values.reshape(shape), noise.reshape(shape))
