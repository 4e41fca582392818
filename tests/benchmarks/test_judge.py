"""The judging benchmark: measures, separation of states of the code, targets and the report."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.comparison.code import commit, fingerprint
from benchmarks.comparison.grid import Grid, run_grid
from benchmarks.comparison.outcomes import Errors, Task, append
from benchmarks.comparison.problem import Comparison, Problem
from benchmarks.data import DataSet
from benchmarks.judge.measures import (
    Variation,
    fractions_of,
    pairs_below,
    peak_mebibytes,
    rare_category_error,
    restart_peak,
    single_columns,
    total_variation,
)
from benchmarks.judge.outcomes import Judgement, newest_code, read_judgements
from benchmarks.judge.report import write_report
from benchmarks.judge.sets import JUDGING, SETS, TUNED, JudgedProblem, Target
from benchmarks.judge.summary import collect_runs
from benchmarks.judge.tables import credit_schema
from benchmarks.judge.targets import against_the_best, check_targets
from benchmarks.judge.times import SmallJob, figures_of_times, generated_problem
from benchmarks.products.sets import named
from scrim.spec.columns import LabelledColumn
from synth.queries import compile_workload
from tests.support import coded_schema, coded_table

SIZES = {"a": 2, "b": 2, "c": 3}


def data_of(rows: list[list[int]]) -> DataSet:
    schema = coded_schema(SIZES)
    return DataSet(schema, coded_table(schema, rows), len(rows))


TRUE = data_of([[0, 0, 0], [0, 1, 1], [1, 0, 2], [1, 1, 2]])


# Measures


def test_total_variation_is_half_the_summed_difference_of_each_pair() -> None:
    asked = compile_workload(named([("a", "b"), ("b", "c")]), TRUE.schema)
    pairs = pairs_below(asked, TRUE)
    assert [block.attributes for block in pairs.blocks] == [("a", "b"), ("b", "c")]
    released = data_of([[0, 0, 0], [0, 0, 0], [1, 0, 2], [1, 1, 2]])
    found = total_variation(pairs, fractions_of(pairs, released), fractions_of(pairs, TRUE))
    assert found == Variation(mean=0.25, max=0.25)
    same = fractions_of(pairs, TRUE)
    assert total_variation(pairs, same, same) == Variation(0, 0)


def test_pairs_are_those_below_what_is_asked() -> None:
    asked = compile_workload(named([("a", "b", "c")]), TRUE.schema)
    found = [block.attributes for block in pairs_below(asked, TRUE).blocks]
    assert found == [("a", "b"), ("a", "c"), ("b", "c")]


def test_many_pairs_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.judge.measures.MAX_PAIRS", 2)
    asked = compile_workload(named([("a", "b", "c")]), TRUE.schema)
    first, second = pairs_below(asked, TRUE), pairs_below(asked, TRUE)
    assert len(first.blocks) == 2
    assert first.blocks == second.blocks


def test_rare_categories_have_few_rows_but_not_too_few() -> None:
    rows = 10_000
    true_counts = np.array([9_000, 51, 49, 10, 9, 0])
    found_counts = np.array([8_000, 1_000, 98, 0, 0, 500])
    error = rare_category_error(found_counts / rows, true_counts / rows, rows=rows)
    # Those of 49 and 10 rows count: one has twice its share, the other has lost all of it.
    assert error == pytest.approx(1.0)
    assert rare_category_error(np.array([1.0]), np.array([1.0]), rows=rows) is None


def test_the_single_columns_that_are_asked_about_are_counted() -> None:
    asked = compile_workload(named([("a", "c")]), TRUE.schema)
    found = fractions_of(single_columns(asked, TRUE), TRUE)
    assert found.tolist() == [*(0.5, 0.5), *(0.25, 0.25, 0.5)]


def test_the_peak_of_memory_is_positive_where_it_is_known() -> None:
    restart_peak()
    peak = peak_mebibytes()
    assert peak is None or peak > 1


def test_features_are_asked_about_together_with_the_target() -> None:
    problem = Problem(TRUE, named([("a", "c"), ("b", "c")]))
    assert JudgedProblem(problem, TRUE, Target("a", [1])).features == ["c"]


# Tables


def test_tables_of_tuning_only_judge_nowhere() -> None:
    names = [each.name for each in SETS]
    assert len(set(names)) == len(names)
    assert all(each.tuned for each in TUNED)
    assert not any(each.tuned for each in JUDGING)
    assert all(each.mechanisms[0] == "auto" for each in SETS)


def test_the_credit_table_is_declared_without_its_identifier() -> None:
    schema = credit_schema()
    assert len(schema.attributes) == 24
    assert all(column.name != "ID" for column in schema.columns)
    education, paid = schema.attribute("EDUCATION"), schema.attribute("PAY_AMT1")
    assert isinstance(education, LabelledColumn)
    assert education.labels == ("0", "1", "2", "3", "4", "5", "6")
    # Nothing paid is a bin of its own.
    assert not isinstance(paid, LabelledColumn) and paid.edges[:3] == (0, 1, 1_000)


# States of the code


def test_the_fingerprint_ignores_words_and_sees_statements(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('"""One."""\nSTEPS = 3\n"""How many."""\n')
    before = fingerprint([tmp_path])
    module.write_text('"""Two."""\n\n# Why.\nSTEPS = 3\n')
    assert fingerprint([tmp_path]) == before
    module.write_text("STEPS = 4\n")
    assert fingerprint([tmp_path]) != before


def test_the_commit_is_named() -> None:
    assert commit()


def judgement(mean: float, **changes: object) -> Judgement:
    errors = Errors(max=10 * mean, mean=mean, rms=2 * mean)
    found = Judgement(
        rows=40_000,
        queries=100,
        answers=errors,
        released_rows=errors,
        seconds=1.0,
        processor_seconds=2.0,
        code="new",
        table_rows=50_000,
        chosen="aim",
        pairs=Variation(0.01, 0.02),
        rare_error=None,
        auc=0.8,
        true_auc=0.9,
        peak_mebibytes=100.0,
        commit="abc",
    )
    return replace(found, **changes)  # type: ignore[arg-type]


def test_lines_of_other_states_of_the_code_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "judge.jsonl"
    assert newest_code(path) is None and read_judgements(path, code=None) == {}
    task = Task("adult", "auto", 1.0, 0)
    append(path, task, judgement(1e-3))
    append(path, replace(task, mechanism="gem"), judgement(1e-3))
    append(path, replace(task, epsilon=0.1), judgement(2e-3, code="old"))
    append(path, task, judgement(3e-3, code="old"))
    assert newest_code(path) == "old"
    old = read_judgements(path, code="old")
    assert [found.answers.mean for found in old.values()] == [2e-3, 3e-3]
    # A later line of another state does not replace one of this state.
    assert read_judgements(path, code="new")[task] == judgement(1e-3)


def test_what_another_state_of_the_code_measured_is_run_again(tmp_path: Path) -> None:
    path = tmp_path / "judge.jsonl"
    task = Task("toy", "auto", 1.0, 0)
    append(path, task, judgement(1e-3, code="old"))
    toy = Comparison("toy", "A toy", ("auto",), lambda: None)

    def run(**asked: object) -> Judgement:
        return judgement(2e-3, code=asked["code"])

    for same_code, lines in ((False, 1), (True, 2), (True, 2)):
        grid = Grid((1.0,), runs=1)
        run_grid([toy], grid, results=path, same_code=same_code, judge=lambda problem: run)
        assert len(path.read_text().splitlines()) == lines


# Targets and the report


def found_on_adult() -> dict[Task, Judgement]:
    means = {("auto", 0.1): 5e-4, ("auto", 1.0): 2e-4, ("gem", 1.0): 3e-4, ("mwem", 1.0): 1e-4}
    return {
        Task("adult-reduced", mechanism, epsilon, run): judgement(mean)
        for (mechanism, epsilon), mean in means.items()
        for run in range(2)
    } | {Task("adult-reduced", "auto", 10.0, 0): judgement(2e-4)}


def test_auto_is_compared_with_the_best() -> None:
    runs = collect_runs(found_on_adult(), TUNED)
    [row] = against_the_best(runs).rows
    assert row[:4] == ["adult-reduced, epsilon 1", "aim", "mwem", 2]
    assert row[4:] == pytest.approx([2.0] * 4)


def test_targets_are_counted() -> None:
    verdicts = [str(verdict) for verdict in check_targets(collect_runs(found_on_adult(), TUNED))]
    rows_mean, rows_max, *_, auc, falls, _ = verdicts
    assert "at most 1.05 times" in rows_mean
    assert "**Missed** in 1 of 1 cases: adult-reduced, epsilon 1: 2 times." in rows_mean
    assert "at most 1.5 times" in rows_max
    assert "**Missed** in 1 of 1 cases: adult-reduced: 0.889." in auc
    assert "**Missed** in 1 of 2 cases: adult-reduced, auto: 0.0002 at epsilon 1" in falls


def test_targets_that_are_met_or_not_measured_say_so() -> None:
    good = {Task("adult-reduced", "auto", 1.0, 0): judgement(1e-4, auc=0.9)}
    *_, auc, falls, _ = check_targets(collect_runs(good, TUNED))
    assert str(auc).endswith("**Met** in 1 of 1 cases.")
    assert str(falls).endswith("Not measured.")
    small = {task: replace(found, table_rows=20_000, auc=0.5) for task, found in good.items()}
    assert not [v for v in check_targets(collect_runs(small, TUNED)) if v.cases]


def test_the_report_keeps_tuning_and_judging_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = found_on_adult() | {Task("nltcs", "auto", 1.0, 0): judgement(1e-4, rare_error=0.25)}
    jobs = [SmallJob("alone, first job", "aim", 1.0, 2.0, "new", "abc")]
    write_report(found, tmp_path, code="new", others=3, times=figures_of_times(jobs))
    written = (tmp_path / "judge.md").read_text()
    printed = capsys.readouterr().out
    assert "commit abc (fingerprint of the code: new). Releases: 10. 3 lines of other" in written
    tuned, judging = written.split("## Tables that only judge")
    assert "## Tables that rules were tuned on" in tuned
    assert "`--set adult-reduced`" in tuned and "`--set nltcs`" not in tuned
    assert "`--set nltcs`" in judging and "`--set adult-reduced`" not in judging
    assert "| auto (aim) | 1 |" in judging and "| 0.25 |" in judging
    assert "| alone, first job | aim | 1 | 2 | 1 |" in judging
    assert "\nauto (aim) " in printed


def test_the_report_of_nothing_says_so(tmp_path: Path) -> None:
    write_report({}, tmp_path, code=None, others=0, times=None)
    assert "Nothing was measured so far." in (tmp_path / "judge.md").read_text()


def test_the_small_job_has_four_columns_and_eight_thousand_rows() -> None:
    problem = generated_problem()
    assert len(problem.private.codes) == 4
    assert {len(codes) for codes in problem.private.codes.values()} == {8_000}
