"""Private-GSD's search: change rows until the loss of their counts falls by no more than noise.

Paper: Liu, Tang, Vietri, Wu (2023), section 4, algorithm 1 and appendix D.1.
Algorithm: a generation proposes mutations and crossovers, each of which changes one cell of the best
rows; the best of all survive (synth/genetic/evolution.py). It ends when the loss no longer falls.
Departures: a generation keeps every candidate that improves the rows, not only the best one; each is
scored again after those before it. All elites start as the same rows, which follow the measured shares
if there are any. Queries are weighted by the precision with which they are measured and can be met
(synth/genetic/evaluation.py). In a window of generations, every cell is tried twenty times. The search
ends with the first window that reduces the loss by less than its standard deviation from noise alone (the
square root of twice the number of queries) or by less than a 500th.
Measured on ADULT, all two- or all three-way marginals, 2,000 rows, three to five draws of the noise:
- Keeping one candidate takes 1.15 to 1.5 times the generations from measured shares, and 3 to 6 times
  (one draw) from uniform rows; errors are the same to within one percent.
- At the end, the mean error is 1 to 4 percent above the minimum during the search with rho 0.014 to 1,
  and 14 to 24 percent with rho 0.0002; the largest error is at most 13 percent above its minimum.
- Ending when residuals look like noise (synth/mechanisms/projection.py) has a mean error lower by 17
  percent with rho 0.0002 and 2 percent with 0.014, and a largest error higher by 29 and 48 percent; with
  more budget, or three-way marginals, the rows never reach that point.
- A loss without the residuals below the noise has a mean error higher by 4 to 9 percent.
"""

import math
from collections.abc import Callable

import numpy as np

from scrim.spec.schema import Schema
from synth.genetic.candidates import new_candidates
from synth.genetic.columns import new_columns
from synth.genetic.elites import new_elites
from synth.genetic.evaluation import Evaluation, evaluate
from synth.genetic.evolution import evolve
from synth.genetic.measured_features import measured_features_of
from synth.genetic.query_counts import loss_of
from synth.genetic.ragged import Floats
from synth.genetic.start import follow_shares
from synth.queries import QuerySet
from synth.table.chunk import Array

TRIES_PER_CELL = 20
"""Candidates for each cell of the rows between two checks of the loss."""
TOLERANCE = 0.002
"""A window that reduces the loss by less than this share is the last."""
WORK_PER_CALL = 25_000_000
"""Approximate number of queries evaluated between two reports, which are less than a second apart."""
WORK_PER_CANDIDATE = 20
"""Cost of proposing a candidate, in evaluated queries."""

Report = Callable[[int, int], None]


def ignore(done: int, total: int) -> None:
    """Discard the report."""


class GeneticSearch:
    """Rows that are fitted to measurements, and can later be fitted to more measurements."""

    def __init__(
        self,
        schema: Schema,
        *,
        rows: int,
        mutations: int,
        crossovers: int,
        elites: int,
        generations: int,
        seed: int,
    ) -> None:
        """Start with `rows` uniform rows (line 4); each fit takes at most `generations` generations."""
        self._schema = schema
        self._mutations = mutations
        self._crossovers = crossovers
        self._elites = elites
        self._generations = generations
        self._rng = np.random.default_rng(seed)
        self._values = new_columns(schema, {}).draw(rows, self._rng)
        self._has_started = False

    @property
    def rows(self) -> dict[str, Array]:
        """The best rows, as numbers of each column: codes of categories, missing numbers as NaN."""
        columns = zip(self._schema.attributes, self._values.T, strict=True)
        return {column.name: numbers.copy() for column, numbers in columns}

    def fit(
        self, measured: QuerySet, values: Floats, noise: Floats, report: Report = ignore
    ) -> int:
        """Fit the rows; return the number of generations.

        Values and noise are fractions; noise is infinite if a query was not measured. Progress is
        reported more than once a second; an exception raised by `report` ends the search.
        """
        features = measured_features_of(measured, values, noise, self._schema)
        if not self._has_started:
            self._values = follow_shares(self._values, features, self._schema, self._rng)
            self._has_started = True
        best = evaluate(self._values, features, self._schema)
        finished = self._evolve(best, int(np.isfinite(features.noise).sum()), report)
        report(self._generations, self._generations)
        return finished

    def _evolve(self, best: Evaluation, queries: int, report: Report) -> int:
        """Run windows of generations until one improves too little."""
        elites = new_elites(self._elites - 1)
        candidates = new_candidates(self._mutations + self._crossovers)
        window = math.ceil(TRIES_PER_CELL * best.values.size / len(candidates.row))
        call = max(1, WORK_PER_CALL // (_work(best) * len(candidates.row)))
        loss, finished = loss_of(best.query_counts), 0
        while finished < self._generations:
            end = min(finished + window, self._generations)
            while finished < end:
                report(finished, self._generations)
                generations = min(call, end - finished)
                evolve(
                    best,
                    elites,
                    candidates,
                    mutations=self._mutations,
                    generations=generations,
                    rng=self._rng,
                )
                finished += generations
            loss_before, loss = loss, loss_of(best.query_counts)
            if loss_before - loss < max(math.sqrt(2 * queries), TOLERANCE * loss):
                break
        return finished


def _work(best: Evaluation) -> int:
    """The approximate number of queries to evaluate for one candidate."""
    by_column = len(best.tables.used_by) + len(best.conjunctions.used_by)
    columns, halfspaces = len(best.columns.steps), len(best.halfspaces.thresholds)
    return WORK_PER_CANDIDATE + by_column // columns + halfspaces
