"""The plain way to score candidates: count all queries on all rows of every one.

The genetic search updates counts for one changed cell instead. This module is its baseline.
"""

import numpy as np

from benchmarks.data import DataSet
from benchmarks.report import seconds
from synth.queries import QuerySet
from synth.table import Chunk, Table

CANDIDATES = 20


class PlainLoss:
    """The distance between the counts of some rows and those of a table, scaled to as many rows."""

    def __init__(self, queries: QuerySet, data: DataSet, rows: int) -> None:
        self._queries = queries
        self._schema = data.schema
        self._wanted = queries.count(data.table) * (rows / data.rows)

    def of(self, rows: Chunk) -> float:
        """The sum of squared differences."""
        counts = self._queries.count(Table(self._schema, [rows]))
        return float(np.square(counts - self._wanted).sum())


def seconds_per_candidate(queries: QuerySet, data: DataSet, rows: int, *, repeats: int) -> float:
    """Time to change random cells to values of other rows and count everything again."""
    rng = np.random.default_rng(0)
    columns = next(iter(data.table.chunks()))
    drawn = rng.integers(len(next(iter(columns.values()))), size=rows)
    best = {name: column[drawn] for name, column in columns.items()}
    loss = PlainLoss(queries, data, rows)

    def score_candidates() -> None:
        for _ in range(CANDIDATES):
            name = str(rng.choice(list(best)))
            changed, source = rng.integers(rows, size=2)
            candidate = {**best, name: best[name].copy()}
            candidate[name][changed] = best[name][source]
            loss.of(candidate)

    return seconds(score_candidates, repeats=repeats) / CANDIDATES
