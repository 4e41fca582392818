"""Small mixed tables with measurements of every kind of query."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from scrim.spec.schema import Schema
from scrim.spec.workload import BinaryTree, Halfspaces, Marginals, Prefixes, Ranges, WorkloadItem
from synth.genetic.candidates import Candidates, new_candidates
from synth.genetic.evaluation import Evaluation, evaluate, keep, score
from synth.genetic.measured_features import measured_features_of
from synth.queries import QuerySet, compile_workload
from synth.table import Table, store_numbers

Floats = NDArray[np.float64]

SCHEMA = Schema.model_validate(
    {
        "columns": [
            {"name": "person", "type": "identifier"},
            {"name": "colour", "type": "categorical", "values": ["r", "g", "b"], "other": "b"},
            {
                "name": "sex",
                "type": "categorical",
                "values": ["f", "m"],
                "other": "m",
                "nullable": False,
            },
            {"name": "age", "type": "integer", "lower": 0, "upper": 99, "bins": {"width": 25}},
            {
                "name": "children",
                "type": "integer",
                "lower": -1,
                "upper": 6,
                "bins": {"width": 1},
                "nullable": False,
            },
            {"name": "price", "type": "real", "lower": -5.0, "upper": 20.0, "decimals": 1},
            {"name": "place", "type": "real", "lower": 0.0, "upper": 1.0, "nullable": False},
        ]
    }
)
NAMES = [column.name for column in SCHEMA.attributes]
WORKLOADS: dict[str, list[WorkloadItem]] = {
    "marginals": [Marginals(type="marginals", k=2), Marginals(type="marginals", k=1)],
    "trees": [BinaryTree(type="binary_tree", k=2, levels=3)],
    "ranges": [Ranges(type="ranges", k=3, count=60, seed=1)],
    "prefixes": [Prefixes(type="prefixes", count=60, seed=2, categorical=1, numeric=2)],
    "halfspaces": [Halfspaces(type="halfspaces", count=40, seed=3)],
}
WORKLOADS["everything"] = [item for items in list(WORKLOADS.values()) for item in items]


@dataclass(frozen=True)
class Problem:
    """Queries with values and noise."""

    queries: QuerySet
    values: Floats
    noise: Floats

    def evaluate(self, rows: Floats) -> Evaluation:
        features = measured_features_of(self.queries, self.values, self.noise, SCHEMA)
        return evaluate(rows.copy(), features, SCHEMA)

    def loss(self, rows: Floats) -> float:
        """The loss of equation 2, from counts by the query classes."""
        size, is_measured = len(rows), np.isfinite(self.noise)
        residuals = (count(self.queries, rows) - size * self.values)[is_measured]
        return float((residuals**2 / ((size * self.noise[is_measured]) ** 2 + 1 / 12)).sum())


def new_problem(kind: str, seed: int, *, unmeasured: float = 0.0) -> Problem:
    """A workload with random values; a share of the queries is not measured."""
    rng = np.random.default_rng(seed)
    queries = compile_workload(WORKLOADS[kind], SCHEMA)
    noise = rng.uniform(0.01, 0.1, queries.size)
    noise[rng.random(queries.size) < unmeasured] = np.inf
    return Problem(queries, rng.uniform(-0.1, 0.6, queries.size), noise)


def random_rows(rows: int, rng: np.random.Generator) -> Floats:
    """Random rows within the declaration, not drawn with the search's own code."""
    missing = rng.random((3, rows)) < 0.3
    columns = [
        rng.integers(4, size=rows).astype(float),
        rng.integers(2, size=rows).astype(float),
        np.where(missing[0], np.nan, rng.integers(0, 100, size=rows)),
        rng.integers(-1, 7, size=rows).astype(float),
        np.where(missing[1], np.nan, rng.integers(-50, 201, size=rows) / 10),
        rng.choice([0.0, 1.0, *rng.random(5)], size=rows),
    ]
    return np.stack(columns, axis=1)


def chunk_of(rows: Floats) -> Any:
    return store_numbers(SCHEMA, dict(zip(NAMES, rows.T, strict=True)))


def count(queries: QuerySet, rows: Floats) -> NDArray[np.int64]:
    return queries.count(Table(SCHEMA, [chunk_of(rows)]))


def random_candidates(rows: Floats, size: int, rng: np.random.Generator) -> Candidates:
    """Cells that get the value of another random row."""
    candidates = new_candidates(size)
    candidates.row[:] = rng.integers(len(rows), size=size)
    candidates.column[:] = rng.integers(rows.shape[1], size=size)
    candidates.value[:] = random_rows(size, rng)[np.arange(size), candidates.column]
    return candidates


def changed(rows: Floats, candidates: Candidates, index: int) -> Floats:
    """The rows that a candidate stands for."""
    other = rows.copy()
    other[candidates.row[index], candidates.column[index]] = candidates.value[index]
    return other


@njit()
def score_all(best: Evaluation, candidates: Candidates) -> None:
    """Score every candidate against the same rows."""
    score(best, candidates, 0, len(candidates.row))


@njit()
def keep_all(best: Evaluation, candidates: Candidates) -> None:
    """Make every change, one after another, whether it improves the rows or not."""
    for index in range(len(candidates.row)):
        score(best, candidates, index, index + 1)
        if candidates.score[index] < np.inf:
            keep(best, candidates, index)
