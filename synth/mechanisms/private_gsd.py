"""Private-GSD: a genetic search for rows whose counts are near the measured ones.

Paper: Liu, Tang, Vietri, Wu (2023), Generating private synthetic data with genetic algorithms, section
4, algorithms 1 and 2, appendix D.
Algorithm: measure everything once, or in each round what the rows answer worst; then change single
cells, to random values or to values of other rows, wherever that brings the counts closer.
Departures: those of the search (synth/genetic/search.py). Every round fits all measurements so far
(algorithm 2 as printed fits only those of the round) and starts from the rows of the previous round.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scrim.spec.mechanism import PrivateGsd
from synth.genetic import GeneticSearch
from synth.genetic.search import Report, ignore
from synth.measurements import EXACT, Measurement, least_noise, merge_repeated
from synth.mechanisms.adaptive import adaptive_measurements
from synth.mechanisms.base import Job, measure_once
from synth.models.rows import Rows
from synth.planning.spending import OneShot, Rounds
from synth.queries import QuerySet, Single
from synth.table import store_numbers

SEARCH_SEED = 0
"""The search is deterministic, so that a resumed job finds the same rows."""

Floats = NDArray[np.float64]


def run(job: Job[OneShot | Rounds], spec: PrivateGsd) -> Rows:
    """Measure, search, and release the rows."""
    learner = RowsLearner(job, spec)
    if isinstance(job.plan, OneShot):
        learner.fit(measure_once(job.with_plan(job.plan)), job.progress)
    else:
        adaptive_measurements(job.with_plan(job.plan), spec, learner)
    return learner.released()


class RowsLearner:
    """The search as a learner for the adaptive loop."""

    def __init__(self, job: Job[OneShot | Rounds], spec: PrivateGsd) -> None:
        self._schema = job.schema
        self._rows = job.estimated_rows
        self._zeros = job.known_zeros
        self._search = GeneticSearch(
            job.schema,
            rows=spec.rows,
            mutations=spec.mutations,
            crossovers=spec.crossovers,
            elites=spec.elites,
            generations=spec.generations,
            seed=SEARCH_SEED,
        )

    def answer(self, queries: QuerySet) -> Floats:
        """Return the exact answers of the rows."""
        return self.released().answer(queries).values

    def update(self, measurements: Sequence[Measurement], newest: Sequence[Measurement]) -> None:
        """Fit all measurements so far."""
        self.fit(measurements)

    def fit(self, measurements: Sequence[Measurement], report: Report = ignore) -> None:
        """Search for rows that fit the measurements."""
        self._search.fit(*combine([*self._zeros, *measurements], self._rows), report)

    def released(self) -> Rows:
        """Return the rows in the declared types."""
        return Rows(self._schema, store_numbers(self._schema, self._search.rows))


def combine(measurements: Sequence[Measurement], rows: int) -> tuple[QuerySet, Floats, Floats]:
    """Average each query's measurements, weighted by precision: queries, fractions and their noise.

    The noise is infinite for queries of a block that were never measured.
    """
    queries = QuerySet(dict.fromkeys(m.block for m in measurements))
    start = dict(zip(queries.blocks, queries.offsets, strict=False))
    precision, weighted = np.zeros(queries.size), np.zeros(queries.size)
    least = least_noise(measurements)
    for measurement in merge_repeated(measurements):
        query = measurement.query
        first = start[measurement.block] + (query.index if isinstance(query, Single) else 0)
        # Zeros of rules are fitted as closely as in any other model, and less than public counts.
        scales = np.where(measurement.is_zero, least, max(measurement.sigma, EXACT))
        weight = scales**-2.0
        precision[first : first + query.size] += weight
        weighted[first : first + query.size] += weight * measurement.values
    measured = precision > 0
    counts, sigmas = np.zeros(queries.size), np.full(queries.size, np.inf)
    counts[measured] = weighted[measured] / precision[measured]
    sigmas[measured] = precision[measured] ** -0.5
    return queries, counts / rows, sigmas / rows
