"""One release, and its errors against the truth. This is allowed for public data only."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.comparison.outcomes import Errors, Outcome
from benchmarks.comparison.problem import Problem
from scrim.spec.mechanism import CATALOGUE as NAMED
from scrim.spec.mechanism import Auto
from scrim.spec.population import Protection
from scrim.spec.release import AskedRelease, ReleaseSpec
from scrim.spec.schema import Schema
from synth.planning.choice import resolve
from synth.queries import QuerySet, compile_workload
from synth.run import FinishedRelease, run
from synth.table import Chunk, Table

REPLACE_ONE = Protection(relation="replace_one")
CATALOGUE = {mechanism.catalogue_name(): mechanism for mechanism in NAMED}
"""Every mechanism by its name, and `auto`."""


@dataclass(frozen=True)
class Truth:
    """The asked queries and their true answers, counted once for all jobs on a problem."""

    queries: QuerySet
    fractions: NDArray[np.float64]


def count_truth(problem: Problem) -> Truth:
    """Count the true answers."""
    queries = compile_workload(problem.workload, problem.private.schema)
    return Truth(queries, queries.count(problem.private.table) / problem.private.rows)


@dataclass(frozen=True)
class TimedRelease:
    """A finished release, the mechanism that made it, and how long the job took."""

    mechanism: str
    """The chosen one where `auto` was asked for."""
    done: FinishedRelease
    seconds: float
    processor_seconds: float


def release_of(
    problem: Problem, mechanism: str, parameters: Mapping[str, object], *, epsilon: float
) -> ReleaseSpec:
    """All that is asked, by a mechanism with those parameters, and as many rows as there are.

    `auto` is resolved as the service resolves it, before the job starts. A named mechanism also runs where
    the service refuses it because its errors are large.
    """
    private, public, named = problem.private, problem.public, CATALOGUE[mechanism]
    fields = {
        "workload": list(problem.workload),
        "mechanism": {"name": mechanism, **parameters},
        "budget": {"epsilon": epsilon},
        "outputs": {"rows": private.rows} if named.releases_rows else {},
        "expected_rows": private.rows,
    }
    if mechanism != Auto.catalogue_name():
        return ReleaseSpec.model_validate(fields)
    asked = AskedRelease.model_validate(fields)
    assisting = public.schema if public is not None and named.takes_public_data else None
    delta = delta_of(problem)
    return resolve(asked, private.schema, REPLACE_ONE, delta, public=assisting).release


def delta_of(problem: Problem) -> float:
    """One over the square of the number of rows."""
    return 1 / problem.private.rows**2


def run_release(
    problem: Problem,
    mechanism: str,
    parameters: Mapping[str, object],
    *,
    epsilon: float,
    seed: int,
) -> TimedRelease:
    """Carry out one release, and time the job."""
    release = release_of(problem, mechanism, parameters, epsilon=epsilon)
    public = problem.public if release.mechanism.needs_public_data else None
    start, processor_start = time.perf_counter(), time.process_time()
    done = run(
        release,
        problem.private.table,
        protection=REPLACE_ONE,
        delta=delta_of(problem),
        public=None if public is None else public.table,
        seed=seed,
    )
    return TimedRelease(
        release.mechanism.name,
        done,
        seconds=time.perf_counter() - start,
        processor_seconds=time.process_time() - processor_start,
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
    timed = run_release(problem, mechanism, parameters, epsilon=epsilon, seed=seed)
    return outcome_of(timed, problem, truth, code=code)


def outcome_of(timed: TimedRelease, problem: Problem, truth: Truth, *, code: str) -> Outcome:
    """Compare a release with the truth."""
    return Outcome(
        rows=problem.private.rows,
        queries=truth.queries.size,
        answers=_errors_of_answers(timed.done, truth),
        released_rows=_errors_of_rows(timed.done, problem, truth),
        seconds=timed.seconds,
        processor_seconds=timed.processor_seconds,
        code=code,
    )


def _errors_of_answers(done: FinishedRelease, truth: Truth) -> Errors:
    assert done.answers is not None
    return _errors(done.answers.fractions, truth)


def _errors_of_rows(done: FinishedRelease, problem: Problem, truth: Truth) -> Errors | None:
    if done.rows is None:
        return None
    released = released_table(done.rows, problem.private.schema)
    return _errors(truth.queries.count(released) / problem.private.rows, truth)


def released_table(rows: Chunk, schema: Schema) -> Table:
    """Released rows as a table: columns that no query mentions are not released."""
    return Table(schema.project(set(rows)), [rows])


def _errors(fractions: NDArray[np.float64], truth: Truth) -> Errors:
    error = np.abs(fractions - truth.fractions)
    rms = float(np.sqrt(np.square(error).mean()))
    return Errors(max=float(error.max()), mean=float(error.mean()), rms=rms)
