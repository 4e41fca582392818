"""One release, and its errors against the truth. This is allowed for public data only."""

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import synth
from benchmarks.comparison.outcomes import Errors, Outcome
from benchmarks.comparison.problem import Problem
from scrim.spec.mechanism import MECHANISMS
from scrim.spec.population import Protection
from scrim.spec.release import ReleaseSpec
from synth.queries import QuerySet, compile_workload
from synth.run import FinishedRelease, run
from synth.table import Table

REPLACE_ONE = Protection(relation="replace_one")
CATALOGUE = {mechanism.catalogue_name(): mechanism for mechanism in MECHANISMS}


def fingerprint() -> str:
    """A hash of the algorithms' code: results of different versions should not be mixed."""
    digest = hashlib.sha256()
    for file in sorted(Path(synth.__path__[0]).rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


@dataclass(frozen=True)
class Truth:
    """The asked queries and their true answers, counted once for all jobs on a problem."""

    queries: QuerySet
    fractions: NDArray[np.float64]


def count_truth(problem: Problem) -> Truth:
    """Count the true answers."""
    queries = compile_workload(problem.workload, problem.private.schema)
    return Truth(queries, queries.count(problem.private.table) / problem.private.rows)


def release_of(
    problem: Problem, mechanism: str, parameters: Mapping[str, object], *, epsilon: float
) -> ReleaseSpec:
    """A release of the whole workload by a mechanism, with as many rows as the private table."""
    outputs = {"rows": problem.private.rows} if CATALOGUE[mechanism].releases_rows else {}
    return ReleaseSpec.model_validate(
        {
            "workload": list(problem.workload),
            "mechanism": {"name": mechanism, **parameters},
            "budget": {"epsilon": epsilon},
            "outputs": outputs,
            "expected_rows": problem.private.rows,
        }
    )


def run_job(
    problem: Problem,
    truth: Truth,
    *,
    mechanism: str,
    parameters: Mapping[str, object],
    epsilon: float,
    seed: int,
    code: str,
) -> Outcome:
    """Carry out one release and compare it with the truth."""
    private, public = problem.private, problem.public
    assisted = CATALOGUE[mechanism].needs_public_data
    release = release_of(problem, mechanism, parameters, epsilon=epsilon)
    start, processor_start = time.perf_counter(), time.process_time()
    done = run(
        release,
        private.table,
        protection=REPLACE_ONE,
        delta=1 / private.rows**2,
        public=public.table if public is not None and assisted else None,
        seed=seed,
    )
    seconds = time.perf_counter() - start
    processor_seconds = time.process_time() - processor_start
    return Outcome(
        rows=private.rows,
        queries=truth.queries.size,
        answers=_errors_of_answers(done, truth),
        released_rows=_errors_of_rows(done, problem, truth),
        seconds=seconds,
        processor_seconds=processor_seconds,
        code=code,
    )


def _errors_of_answers(done: FinishedRelease, truth: Truth) -> Errors:
    assert done.answers is not None
    return _errors(done.answers.fractions, truth)


def _errors_of_rows(done: FinishedRelease, problem: Problem, truth: Truth) -> Errors | None:
    if done.rows is None:
        return None
    released = Table(problem.private.schema, [done.rows])
    return _errors(truth.queries.count(released) / problem.private.rows, truth)


def _errors(fractions: NDArray[np.float64], truth: Truth) -> Errors:
    error = np.abs(fractions - truth.fractions)
    return Errors(max=float(error.max()), mean=float(error.mean()))
