"""The benchmark of whole releases runs, goes on where it stopped, and reports what it found."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.comparison.grid import Grid, run_grid
from benchmarks.comparison.outcomes import Errors, Outcome, Outcomes, Task, append, read
from benchmarks.comparison.problem import Comparison, Problem
from benchmarks.data import DataSet
from benchmarks.products.claims import check_claims
from benchmarks.products.overview import overview, write_overview
from benchmarks.products.report import write_report
from benchmarks.products.sets import COMPARISONS, all_marginals, named, random_marginals
from scrim.spec.mechanism import MECHANISMS
from synth.table import Table
from tests.support import coded_schema

SIZES = {"a": 2, "b": 3, "c": 4, "d": 5}


def toy_data(rows: int, seed: int) -> DataSet:
    rng = np.random.default_rng(seed)
    schema = coded_schema(SIZES)
    chunk = {name: rng.integers(size, size=rows, dtype=np.uint8) for name, size in SIZES.items()}
    return DataSet(schema, Table(schema, [chunk]), rows)


def toy_problem() -> Problem:
    """No query mentions column d, so it is not released."""
    private = toy_data(500, seed=0)
    asked = [names for names in all_marginals(private) if "d" not in names]
    return Problem(private, named(asked), public=toy_data(100, seed=1))


TOY = Comparison("toy", "A toy", ("gaussian", "mwem", "pmw_pub"), toy_problem)
GRID = Grid(epsilons=(0.5, 1.0), runs=2)


@pytest.mark.random
def test_a_grid_is_run_and_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "products.jsonl"
    run_grid([TOY], GRID, results=results)
    outcomes = read(results)
    assert outcomes.keys() == set(GRID.tasks(TOY))
    for task, outcome in outcomes.items():
        assert 0 < outcome.answers.mean < outcome.answers.max < 1
        assert (outcome.released_rows is None) == (task.mechanism == "gaussian")

    write_report([TOY], outcomes, tmp_path / "report")
    assert (tmp_path / "report" / "products-toy.svg").read_text().startswith("<svg")
    written = (tmp_path / "report" / "products.md").read_text()
    printed = capsys.readouterr().out
    for mechanism in TOY.mechanisms:
        assert f"| {mechanism} |" in written
        assert f"\n{mechanism} " in printed


@pytest.mark.random
def test_a_grid_goes_on_where_it_stopped(tmp_path: Path) -> None:
    results = tmp_path / "products.jsonl"
    run_grid([TOY], Grid((1.0,), runs=1, mechanisms=["gaussian"]), results=results)
    first = results.read_text()
    run_grid([TOY], Grid((1.0,), runs=2, mechanisms=["gaussian"]), results=results)
    assert results.read_text().startswith(first)
    assert len(results.read_text().splitlines()) == 2


@pytest.mark.random
def test_of_two_outcomes_the_later_counts(tmp_path: Path) -> None:
    results = tmp_path / "products.jsonl"
    run_grid([TOY], Grid((1.0,), runs=1, mechanisms=["gaussian"]), results=results)
    [(task, outcome)] = read(results).items()
    later = replace(outcome, seconds=outcome.seconds + 1)
    append(results, task, later)
    assert read(results) == {task: later}


@pytest.mark.random
def test_the_report_says_when_the_code_changed_in_between(tmp_path: Path) -> None:
    results = tmp_path / "products.jsonl"
    run_grid([TOY], Grid((1.0,), runs=1, mechanisms=["gaussian"]), results=results)
    [(task, outcome)] = read(results).items()
    append(results, replace(task, run=1), replace(outcome, code="changed"))
    write_report([TOY], read(results), tmp_path)
    assert "2 different states of the code" in (tmp_path / "products.md").read_text()


def test_what_cannot_run_is_left_out_with_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    without_public = replace(toy_problem(), public=None)
    comparison = Comparison("toy", "A toy", ("pmw_pub", "not_yet"), lambda: without_public)
    run_grid([comparison], Grid((1.0,), runs=1), results=tmp_path / "products.jsonl")
    printed = capsys.readouterr().out
    assert "not_yet is left out" in printed
    assert "pmw_pub needs a public dataset" in printed
    assert read(tmp_path / "products.jsonl") == {}


@pytest.mark.random
def test_one_table_shows_all_mechanisms_or_why_not(tmp_path: Path) -> None:
    results = tmp_path / "products.jsonl"
    run_grid([TOY], Grid((0.5, 1.0), runs=2, mechanisms=["gaussian"]), results=results)
    lines = {str(line[0]): str(line[1]) for line in overview([TOY], read(results)).rows}
    assert lines.keys() == {mechanism.catalogue_name() for mechanism in MECHANISMS}
    found = [o.answers for task, o in read(results).items() if task.epsilon == 1]
    assert lines["gaussian"].startswith(f"{sum(e.max for e in found) / 2:.2g} / ")
    assert lines["gaussian"].endswith("(2 runs)")
    assert lines["mwem"] == lines["aim"] == "– not measured"
    assert lines["pep"] == "– one weight per combination"
    assert lines["gem_pub"] == "– public data"
    assert lines["h_gem"] == "– groups"
    write_overview([replace(TOY, name="adult")], {}, tmp_path)
    assert "- `adult`: A toy" in (tmp_path / "all.md").read_text()


def test_random_marginals_fit_into_the_rows() -> None:
    data = toy_data(30, seed=0)
    chosen = random_marginals(data, 2)
    assert chosen == random_marginals(data, 2)
    assert set(chosen) == {("a", "b", "c"), ("a", "b", "d")}


def test_one_run_of_everything_comes_first() -> None:
    tasks = list(GRID.tasks(TOY))
    assert tasks[0] == Task("toy", "gaussian", 0.5, 0)
    assert [task.run for task in tasks] == [0] * 6 + [1] * 6


def outcomes_on(
    comparison: str, errors: dict[str, tuple[float, float]], epsilon: float
) -> Outcomes:
    return {
        Task(comparison, mechanism, epsilon, 0): Outcome(
            10, 10, Errors(*both), Errors(*both), seconds=1.0, processor_seconds=1.0, code="one"
        )
        for mechanism, both in errors.items()
    }


def test_claims_are_checked_where_both_were_measured() -> None:
    outcomes = outcomes_on(
        "adult",
        {
            "gem": (0.01, 2e-4),
            "rap": (0.02, 3e-4),
            "rap_softmax": (0.015, 1e-4),
            "generative_network": (0.007, 7e-5),
        },
        1.0,
    ) | outcomes_on("adult-public-columns", {"gem": (0.2, 0.1), "gem_pub": (0.1, 0.05)}, 0.1)
    goals, tables, networks, *public = check_claims(COMPARISONS, outcomes)
    assert goals.against == ["epsilon 1, gem, mean: 0.0002 instead of 0.0001"]
    assert ["epsilon 1, best of the family: generative_network, max", 0.007, 0.0075] in (
        goals.figures.rows
    )
    assert tables.measured == 2 and not tables.against
    assert networks.against == ["adult, epsilon 1, mean: 0.5 times"]
    assert [claim.measured for claim in public] == [0, 0, 0, 2]
    assert not public[-1].against
