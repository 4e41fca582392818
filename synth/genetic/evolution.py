"""Generations of mutations and crossovers, compiled.

Paper: Liu, Tang, Vietri, Wu (2023), algorithm 1, lines 5 to 11.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from synth.compiled import kept_on_disk
from synth.genetic.candidates import Candidates
from synth.genetic.columns import Columns, draw_value
from synth.genetic.compiled import compiled, fingerprint
from synth.genetic.conjunctions import ConjunctionArrays
from synth.genetic.elites import Elites, cell_of, insert, succeed
from synth.genetic.evaluation import Evaluation, keep, score
from synth.genetic.halfspaces import HalfspaceArrays
from synth.genetic.query_counts import QueryCounts
from synth.genetic.ragged import Floats
from synth.genetic.tables import Tables


def evolve(
    best: Evaluation,
    elites: Elites,
    candidates: Candidates,
    *,
    mutations: int,
    generations: int,
    rng: np.random.Generator,
) -> None:
    """Run `generations` generations; the first candidates are mutations, the others crossovers."""
    plain = tuple(tuple(part) if isinstance(part, tuple) else part for part in best)
    _entry()(plain, tuple(elites), tuple(candidates), mutations, generations, rng)


@cache
def _entry() -> Callable[..., None]:
    """The entry into compiled code, which takes plain tuples (synth/genetic/compiled.py)."""
    sources = fingerprint()

    def run(
        best: Any,
        elites: Any,
        candidates: Any,
        mutations: int,
        generations: int,
        rng: np.random.Generator,
    ) -> None:
        assert sources  # enclosed, so that the cache key on disk includes the sources
        evaluation = Evaluation(
            best[0],
            best[1],
            Columns(*best[2]),
            Tables(*best[3]),
            ConjunctionArrays(*best[4]),
            HalfspaceArrays(*best[5]),
            QueryCounts(*best[6]),
        )
        others, proposed = Elites(*elites), Candidates(*candidates)
        _evolve(evaluation, others, proposed, mutations, generations, rng)

    return kept_on_disk(run)


@compiled
def _evolve(
    best: Evaluation,
    elites: Elites,
    candidates: Candidates,
    mutations: int,
    generations: int,
    rng: np.random.Generator,
) -> None:
    """Run lines 5 to 11."""
    for _ in range(generations):
        _mutate(best.values, best.columns, candidates, mutations, rng)
        _cross(best.values, elites, candidates, mutations, rng)
        score(best, candidates, 0, len(candidates.score))
        _survive(best, elites, candidates)


@compiled
def _mutate(
    values: Floats,
    columns: Columns,
    candidates: Candidates,
    mutations: int,
    rng: np.random.Generator,
) -> None:
    """Line 8: put a random value of the column into a random cell."""
    for index in range(mutations):
        column = int(rng.random() * values.shape[1])
        candidates.row[index] = int(rng.random() * values.shape[0])
        candidates.column[index] = column
        candidates.value[index] = draw_value(columns, column, rng)


@compiled
def _cross(
    values: Floats,
    elites: Elites,
    candidates: Candidates,
    mutations: int,
    rng: np.random.Generator,
) -> None:
    """Line 9: put the value of another row of a random elite into a random cell."""
    others = 0
    while others < len(elites.excess) and elites.excess[others] < math.inf:
        others += 1
    for index in range(mutations, len(candidates.row)):
        column = int(rng.random() * values.shape[1])
        candidates.row[index] = int(rng.random() * values.shape[0])
        candidates.column[index] = column
        row, elite = int(rng.random() * values.shape[0]), int(rng.random() * (others + 1))
        if elite == others:  # the best rows themselves
            candidates.value[index] = values[row, column]
        else:
            candidates.value[index] = cell_of(values, elites, elite, row, column)


@compiled
def _survive(best: Evaluation, elites: Elites, candidates: Candidates) -> None:
    """Line 10: keep the best of the generation.

    Candidates are tried from best to worst, and scored again if the rows have changed since. Every one
    that still improves the rows is kept; the next ones may become elites.
    """
    has_changed = False
    runners_up = len(elites.excess)
    while True:
        index = int(np.argmin(candidates.score))
        if candidates.score[index] == math.inf or (
            candidates.score[index] >= 0 and runners_up == 0
        ):
            return
        if candidates.score[index] >= 0:
            runners_up -= 1
        if has_changed:
            score(best, candidates, index, index + 1)
        row, column, value = (
            candidates.row[index],
            candidates.column[index],
            candidates.value[index],
        )
        change = candidates.score[index]
        if change < 0:
            succeed(elites, row, column, best.values[row, column], -change)
            keep(best, candidates, index)
            has_changed = True
        elif len(elites.excess) > 0 and change < elites.excess[-1]:
            insert(elites, row, column, value, change)
        candidates.score[index] = math.inf
