"""One release of a judged table: its errors, and what its rows are good for."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from benchmarks.comparison.code import commit
from benchmarks.comparison.grid import Judge
from benchmarks.comparison.job import Truth, count_truth, outcome_of, released_table, run_release
from benchmarks.data import DataSet
from benchmarks.judge.classifier import classifier_auc
from benchmarks.judge.measures import (
    Fractions,
    fractions_of,
    pairs_below,
    peak_mebibytes,
    rare_category_error,
    restart_peak,
    single_columns,
    total_variation,
)
from benchmarks.judge.outcomes import Judgement
from benchmarks.judge.sets import JudgedProblem
from synth.queries import QuerySet


@dataclass(frozen=True)
class JudgedTruth:
    """What the true rows say, computed once for all jobs on a table."""

    asked: Truth
    pairs: QuerySet
    true_pairs: Fractions
    columns: QuerySet
    true_columns: Fractions
    true_auc: float
    commit: str


def learn_truth(problem: JudgedProblem) -> JudgedTruth:
    """Count what is compared, and train on the true rows."""
    private = problem.released.private
    asked = count_truth(problem.released)
    pairs, columns = pairs_below(asked.queries, private), single_columns(asked.queries, private)
    return JudgedTruth(
        asked,
        pairs,
        fractions_of(pairs, private),
        columns,
        fractions_of(columns, private),
        true_auc=_auc(private, problem),
        commit=commit(),
    )


def judge_table(problem: JudgedProblem) -> Judge:
    """Of releases of one table; the truth is learnt once."""
    return partial(run_judged_job, problem, learn_truth(problem))


def run_judged_job(
    problem: JudgedProblem,
    truth: JudgedTruth,
    *,
    mechanism: str,
    parameters: Mapping[str, object],
    epsilon: float,
    seed: int,
    code: str,
) -> Judgement:
    """Carry out one release and compare it with the truth."""
    released = problem.released
    restart_peak()
    timed = run_release(released, mechanism, parameters, epsilon=epsilon, seed=seed)
    peak = peak_mebibytes()
    rows = timed.done.rows
    assert rows is not None
    table = released_table(rows, released.private.schema)
    synthetic = DataSet(table.schema, table, len(next(iter(rows.values()))))
    pairs = fractions_of(truth.pairs, synthetic)
    columns = fractions_of(truth.columns, synthetic)
    return Judgement(
        **vars(outcome_of(timed, released, truth.asked, code=code)),
        table_rows=released.private.rows + problem.test.rows,
        chosen=timed.mechanism,
        pairs=total_variation(truth.pairs, pairs, truth.true_pairs),
        rare_error=rare_category_error(columns, truth.true_columns, rows=released.private.rows),
        auc=_auc(synthetic, problem),
        true_auc=truth.true_auc,
        peak_mebibytes=peak,
        commit=truth.commit,
    )


def _auc(training: DataSet, problem: JudgedProblem) -> float:
    return classifier_auc(training, problem.test, problem.target, features=problem.features)
