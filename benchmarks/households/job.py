"""One release of groups and individuals, and its errors at both levels."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.comparison.grid import Judge
from benchmarks.comparison.job import CATALOGUE
from benchmarks.comparison.outcomes import Errors, Outcome
from benchmarks.households import random_join
from benchmarks.households.data import Households
from benchmarks.households.outcomes import LEVELS, TwoLevelOutcome
from benchmarks.households.sets import TwoLevelProblem
from scrim.spec.release import ReleaseSpec
from synth.queries import HierarchicalQueries, QuerySet, compile_workload
from synth.run import run
from synth.table import Chunk

COMPETITORS = (*CATALOGUE, random_join.NAME)


@dataclass(frozen=True)
class Truth:
    """The asked queries, the level of each, and their true answers."""

    queries: QuerySet
    is_at: Mapping[str, NDArray[np.bool_]]
    private: Households

    @cached_property
    def fractions(self) -> NDArray[np.float64]:
        """The true answers as fractions."""
        return self.fractions_of(self.private)

    def fractions_of(self, data: Households) -> NDArray[np.float64]:
        """The answers of some data, as fractions of their groups and of their individuals."""
        counts = self.queries.count(data.table)
        return np.where(self.is_at["group"], counts / data.groups, counts / data.individuals)


def count_truth(problem: TwoLevelProblem) -> Truth:
    """Count the true answers."""
    linked = problem.private.schema.linked
    queries = compile_workload(problem.workload, linked)
    levels = np.repeat(
        [block.level for block in queries.blocks if isinstance(block, HierarchicalQueries)],
        [block.size for block in queries.blocks],
    )
    return Truth(queries, {level: levels == level for level in LEVELS}, problem.private)


def judge_groups(problem: TwoLevelProblem) -> Judge:
    """Build a judge for releases of groups and individuals; the truth is counted once."""
    return partial(run_job, problem, count_truth(problem))


@dataclass(frozen=True)
class Released:
    """What is compared with the truth."""

    answers: NDArray[np.float64] | None
    """Answers as fractions, if there are any besides those of the rows."""
    rows: Chunk


def run_job(
    problem: TwoLevelProblem,
    truth: Truth,
    *,
    mechanism: str,
    parameters: Mapping[str, object],
    epsilon: float,
    seed: int,
    code: str,
) -> TwoLevelOutcome:
    """Carry out one release and compare it with the truth."""
    start, processor_start = time.perf_counter(), time.process_time()
    if mechanism == random_join.NAME:
        rows = random_join.random_join(problem, parameters, epsilon=epsilon, seed=seed)
        released = Released(None, rows)
    else:
        released = _run(problem, mechanism, parameters, epsilon=epsilon, seed=seed)
    seconds = time.perf_counter() - start
    processor_seconds = time.process_time() - processor_start
    of_rows = truth.fractions_of(Households(problem.private.schema, released.rows))
    of_answers = of_rows if released.answers is None else released.answers
    sizes = {"group": problem.private.groups, "individual": problem.private.individuals}
    return TwoLevelOutcome(
        **{
            level: Outcome(
                rows=sizes[level],
                queries=int(truth.is_at[level].sum()),
                answers=errors_at(level, of_answers, truth),
                released_rows=errors_at(level, of_rows, truth),
                seconds=seconds,
                processor_seconds=processor_seconds,
                code=code,
            )
            for level in LEVELS
        }
    )


def _run(
    problem: TwoLevelProblem,
    mechanism: str,
    parameters: Mapping[str, object],
    *,
    epsilon: float,
    seed: int,
) -> Released:
    """Release the whole workload by a mechanism of the catalogue, with as many groups as there are."""
    release = ReleaseSpec.model_validate(
        {
            "workload": list(problem.workload),
            "mechanism": {"name": mechanism, **parameters},
            "budget": {"epsilon": epsilon},
            "outputs": {"rows": problem.private.groups},
            "expected_rows": problem.private.groups,
        }
    )
    done = run(
        release,
        problem.private.table,
        protection=problem.protection,
        delta=problem.delta,
        seed=seed,
    )
    assert done.answers is not None and done.rows is not None
    return Released(done.answers.fractions, done.rows)


def errors_at(level: str, fractions: NDArray[np.float64], truth: Truth) -> Errors:
    """Errors of the queries at one level."""
    error = np.abs(fractions - truth.fractions)[truth.is_at[level]]
    return Errors(max=float(error.max()), mean=float(error.mean()))
