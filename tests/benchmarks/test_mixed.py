"""The benchmark of tables with categories and numbers reads its sets, measures, and reports."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from benchmarks.acs import COLUMN_SETS, DERIVED, TREE_LEAVES, persons
from benchmarks.comparison.grid import Grid, run_grid
from benchmarks.comparison.job import count_truth
from benchmarks.comparison.outcomes import Errors, Outcome, Task, read
from benchmarks.mixed.claims import check_claims
from benchmarks.mixed.findings import Findings, measure_cases
from benchmarks.mixed.report import write_report
from benchmarks.mixed.sets import SETS, all_questions
from benchmarks.mixed.studies import crossover, downstream, figure_1, speed
from benchmarks.mixed.studies.logistic import LogisticRegression, f1_score, features_of
from benchmarks.mixed.studies.plain import PlainLoss
from scrim.spec.schema import Schema
from scrim.spec.workload.conditions import numeric_columns
from synth.table import Table

CODES = {
    "SEX": 2,
    "RAC1P": 9,
    "CIT": 5,
    "NATIVITY": 2,
    "SCHL": 24,
    "MAR": 5,
    "FER": 2,
    "ESR": 6,
    "COW": 9,
    "JWTRNS": 12,
    "PUBCOV": 2,
    "DIS": 2,
    "DEAR": 2,
    "DEYE": 2,
    "DREM": 2,
    "MIL": 4,
    "MIGSP": 300,
    "OCCP": 9920,
}
NUMBERS = {
    "AGEP": (0, 96),
    "WKHP": (1, 99),
    "JWMNP": (1, 195),
    "POVPIP": (0, 501),
    "PINCP": (-11_500, 1_945_000),
    "WAGP": (0, 907_000),
}
NEVER_BLANK = {"SEX", "RAC1P", "CIT", "NATIVITY", "MAR", "PUBCOV", "DIS", "DEAR", "DEYE", "AGEP"}
ROWS = 600


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """Persons of a state that does not exist, written as the benchmark reads them."""
    rng = np.random.default_rng(0)
    cells: dict[str, Any] = {
        **{name: rng.integers(1, codes, ROWS, endpoint=True) for name, codes in CODES.items()},
        **{name: rng.integers(*bounds, ROWS, endpoint=True) for name, bounds in NUMBERS.items()},
    }
    for name in cells.keys() - NEVER_BLANK:
        cells[name] = pd.array(cells[name], dtype="Int64")
        cells[name][rng.random(ROWS) < 0.2] = pd.NA
    cells["PUBCOV"] = cells["DIS"]  # something to learn
    declared: dict[str, dict[str, Any]] = {
        **{n: {"codes": list(range(1, codes + 1))} for n, codes in CODES.items()},
        **{n: {"min": bounds[0], "max": bounds[1]} for n, bounds in NUMBERS.items()},
    }
    for name, column in declared.items():
        column["nullable"] = name not in NEVER_BLANK
    folder = tmp_path / "data" / "acs-pums-2024"
    folder.mkdir(parents=True)
    (folder / "schema.json").write_text(json.dumps({"persons": declared}))
    written = pd.DataFrame(cells)
    written.to_csv(folder / "persons_ZZ.csv.gz", index=False)
    monkeypatch.setenv("SCRIM_BENCHMARK_DATA", str(tmp_path / "data"))
    return written


# Column sets


@pytest.mark.parametrize("name", COLUMN_SETS)
def test_a_set_has_its_columns_and_its_persons(name: str, rows: pd.DataFrame) -> None:
    column_set = COLUMN_SETS[name]
    data = persons("ZZ", column_set)
    assert [c.name for c in data.schema.columns] == [*column_set.categorical, *column_set.numeric]
    kept = rows
    for column, (lower, upper) in column_set.kept.items():
        kept = kept[kept[column].between(lower, upper).fillna(False)]
    assert data.rows == len(kept) > 0
    [(_, numbers)] = data.table.read(codes=(), numbers=["AGEP"])
    assert numbers["AGEP"].tolist() == kept["AGEP"].tolist()


def test_bounds_are_those_of_the_schema_or_of_the_chosen_persons(rows: pd.DataFrame) -> None:
    columns = numeric_columns(persons("ZZ", COLUMN_SETS["coverage"]).schema)
    income, age = columns["PINCP"], columns["AGEP"]
    assert (income.line.lower, income.line.upper, income.nullable) == (-11_500, 30_000, False)
    assert (age.line.lower, age.line.upper) == (15, 64)
    hours = numeric_columns(persons("ZZ", COLUMN_SETS["mobility"]).schema)["WKHP"]
    assert (hours.line.lower, hours.line.upper, hours.nullable) == (1, 99, True)


@pytest.mark.parametrize("name", SETS)
def test_bins_are_the_leaves_of_a_tree(name: str, rows: pd.DataFrame) -> None:
    schema = persons("ZZ", COLUMN_SETS[name], bins=TREE_LEAVES).schema
    for column in COLUMN_SETS[name].numeric:
        attribute = schema.attribute(column)
        assert attribute.size == TREE_LEAVES + attribute.nullable


@pytest.mark.parametrize(
    ("column", "numbers", "classes"),
    [
        ("MIG", [np.nan, 36, 72, 109], ["same house", "in the US", "in the US", "abroad"]),
        ("PINCP>50000", [np.nan, -500, 50_000, 50_001], ["no", "no", "no", "yes"]),
        ("JWMNP>20", [np.nan, 20, 21], ["no", "no", "yes"]),
        ("ESR=1", [np.nan, 1, 2, 6], ["no", "yes", "no", "no"]),
        ("OCCP", [np.nan, 10, 440, 500], ["", "management", "management", "business"]),
    ],
)
def test_derived_columns(column: str, numbers: list[float], classes: list[str]) -> None:
    assert DERIVED[column].of(pd.Series(numbers)).fillna("").tolist() == classes


# Comparisons


@pytest.mark.random
def test_a_release_is_measured_and_reported(tmp_path: Path, rows: pd.DataFrame) -> None:
    questions = all_questions(prefixes=30, halfspaces=10)
    results, studies = tmp_path / "mixed.jsonl", tmp_path / "mixed-studies.jsonl"
    [comparison] = questions["marginals-2"].comparisons(["income"], "ZZ").values()
    grid = Grid((0.23, 1.0), runs=2, mechanisms=["gaussian"])
    run_grid([comparison], grid, results=results)
    outcomes = read(results)
    assert {task.comparison for task in outcomes} == {"ZZ-income-marginals-2"}
    assert len(outcomes) == 4
    write_report(questions, outcomes, tmp_path, state="ZZ", studies=studies)
    written = (tmp_path / "mixed.md").read_text()
    assert "| income: gaussian |" in written
    assert "## 2-way categorical marginals, one-shot" in written
    assert "prefixes, adaptive" not in written
    assert (tmp_path / "mixed-marginals-2.svg").read_text().startswith("<svg")


@pytest.mark.parametrize("name", SETS)
def test_every_question_can_be_counted(name: str, rows: pd.DataFrame) -> None:
    asked = all_questions(prefixes=30, halfspaces=10)
    categories = len(COLUMN_SETS[name].categorical)
    numbers = len(COLUMN_SETS[name].numeric)
    expected = {
        "prefixes": 1,
        "halfspaces": 1,
        "trees": categories * numbers,
        "marginals-2": categories * (categories - 1) // 2,
    }
    for kind, blocks in expected.items():
        truth = count_truth(asked[kind].problem(COLUMN_SETS[name], "ZZ"))
        assert len(truth.queries.blocks) == blocks
        assert 0 < truth.fractions.max() <= 1
    assert len(count_truth(asked["prefixes"].problem(COLUMN_SETS[name], "ZZ")).fractions) == 30


# Studies


def test_a_study_goes_on_where_it_stopped(tmp_path: Path) -> None:
    findings = Findings(tmp_path / "studies.jsonl", "squares")
    measured = []

    def square(case: Any) -> dict[str, int]:
        measured.append(case["number"])
        return {"square": case["number"] ** 2}

    measure_cases(findings, [{"number": 1, "of": "a"}], square)
    measure_cases(findings, [{"of": "a", "number": 1}, {"of": "a", "number": 2}], square)
    assert measured == [1, 2]
    assert [found["square"] for _, found in findings.read()] == [1, 4]
    measure_cases(findings, [{"number": 1, "of": "a"}], lambda case: {"square": -1}, again=True)
    assert [found["square"] for _, found in findings.read()] == [-1, 4]
    assert Findings(findings.path, "cubes").read() == []


def test_studies_are_reported(tmp_path: Path) -> None:
    studies = tmp_path / "studies.jsonl"
    case = {"data": "all rows at 0.5", "mechanism": "private_gsd", "run": 0}
    Findings(studies, "figure-1").append(case, {"errors": [0.25, 0.5, 0.125]}, code="")
    steps = len(crossover.GENERATIONS)
    for population in crossover.POPULATIONS:
        found = {"mean_errors": [0.1] * steps, "seconds": [1.5] * steps}
        case = {"population": population, "run": 0}
        Findings(studies, "crossover").append(case, found, code="")
    for method, epsilon in (("private_gsd, halfspaces", 1.0), (downstream.TRUE_ROWS, None)):
        case = {"method": method, "epsilon": epsilon, "run": 0}
        scores = dict.fromkeys(downstream.TARGETS, 0.75)
        Findings(studies, "downstream").append(case, scores, code="")
    write_report({}, {}, tmp_path, state="ZZ", studies=studies)
    written = (tmp_path / "mixed.md").read_text()
    assert "| private_gsd | 0.25 | 0.5 | 0.125 | 1 |" in written
    assert "| 200 mutations | 0.1 |" in written
    assert "| the true rows | 0.75 | 0.75 | 0.75 | 0.75 | 1 |" in written
    assert (tmp_path / "mixed-crossover.svg").read_text().startswith("<svg")


@pytest.mark.random
def test_three_prefixes_are_missed_by_rows_in_the_wrong_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figure_1, "ROWS", 1000)
    quick = {"private_gsd": {"mode": "one_shot", "rows": 20, "generations": 200}}
    monkeypatch.setattr(figure_1, "PARAMETERS", quick)
    findings = Findings(tmp_path / "studies.jsonl", "figure-1")
    figure_1.measure(findings, runs=1)
    assert [case["data"] for case, _ in findings.read()] == list(figure_1.COLUMNS)
    for _, found in findings.read():
        assert len(found["errors"]) == 3
        assert max(found["errors"]) < 0.2


def test_populations_with_and_without_crossovers_evolve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, small in (
        ("ROWS", 200),
        ("CATEGORIES", 50),
        ("PRESENT", 5),
        ("GENERATIONS", (5, 40)),
    ):
        monkeypatch.setattr(crossover, name, small)
    findings = Findings(tmp_path / "studies.jsonl", "crossover")
    crossover.measure(findings, runs=1)
    assert [case["population"] for case, _ in findings.read()] == list(crossover.POPULATIONS)
    for _, found in findings.read():
        first, last = found["mean_errors"]
        assert last < first


def test_the_search_is_timed_against_what_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    growing = speed.GROWING["cells of one marginal"][1]
    monkeypatch.setattr(speed, "GROWING", {"cells": ((16, 64), growing)})
    monkeypatch.setattr(speed, "PLAIN", {"one marginal": lambda: growing(16)})
    monkeypatch.setattr(speed, "GENERATIONS", 20)
    findings = Findings(tmp_path / "studies.jsonl", "speed")
    speed.measure(findings, runs=1)
    [beside, *grown] = speed.tables(findings)
    assert [row[0] for row in beside.rows] == ["one marginal"]
    assert [row[0] for table in grown for row in table.rows] == ["16", "64"]


def test_the_plain_loss_is_zero_for_the_rows_themselves(rows: pd.DataFrame) -> None:
    questions = all_questions()["marginals-2"]
    problem = questions.problem(COLUMN_SETS["income"], "ZZ")
    data, queries = problem.private, count_truth(problem).queries
    loss = PlainLoss(queries, data, data.rows)
    [own] = data.table.chunks()
    assert loss.of(own) == 0
    changed = {**own, "SEX": own["SEX"].copy()}
    changed["SEX"][0] = 1 - changed["SEX"][0]
    # In each of the seven marginals with that column, one cell has one more and one has one less.
    assert loss.of(changed) == 14
    twice = PlainLoss(queries, data, 2 * data.rows)
    assert twice.of(own) == np.square(queries.count(data.table)).sum()


def test_labels_are_learnt_from_rows(rows: pd.DataFrame) -> None:
    data = persons("ZZ", downstream.COLUMNS)
    training, test = data.split(downstream.TEST_SHARE, 0)
    assert training.rows + test.rows == data.rows
    assert 0.1 < test.rows / data.rows < 0.3
    found = downstream.scores(training.table, test.table)
    assert found["PUBCOV"] == 1.0
    assert found["JWMNP>20"] < 0.95


def test_features_mark_what_is_missing() -> None:
    schema = Schema.model_validate(
        {
            "columns": [
                {"name": "a", "type": "categorical", "values": ["x", "y"], "other": "y"},
                {"name": "b", "type": "integer", "lower": 10, "upper": 20},
            ]
        }
    )
    chunk = {"a": np.array([1, 2], np.uint8), "b": np.array([5, 11], np.uint8)}
    features = features_of(Table(schema, [chunk]), ["a", "b"])
    assert features.tolist() == [[0, 1, 0, 0.5, 0], [0, 0, 1, 0, 1]]


def test_logistic_regression_separates_and_f1_counts() -> None:
    place = torch.linspace(-1, 1, 200)[:, None]
    labels = (place[:, 0] > 0.3).float()
    predicted = LogisticRegression(place, labels).predict(place)
    assert f1_score(predicted, labels) > 0.9
    some = torch.tensor([True, True, False, False])
    assert f1_score(some, torch.tensor([1.0, 0.0, 1.0, 0.0])) == 0.5
    assert f1_score(torch.zeros(2, dtype=torch.bool), torch.ones(2)) == 0.0


def test_claims_are_checked_where_both_were_measured() -> None:
    def outcome(largest: float, mean: float, seconds: float = 1.0) -> Outcome:
        errors = Errors(largest, mean)
        return Outcome(100, 10, errors, errors, seconds, seconds, "code")

    outcomes = {
        Task("NY-income-prefixes-20000", "private_gsd", 1.0, 0): outcome(0.03, 0.001),
        Task("NY-income-prefixes-20000", "rap_plus_plus", 1.0, 0): outcome(0.02, 0.002),
        Task("NY-income-prefixes-20000", "private_gsd", 0.23, 0): outcome(0.03, 0.001),
        Task("NY-income-marginals-3", "private_gsd", 1.0, 0): outcome(0.019, 0.9),
        Task("NY-income-marginals-3", "gem", 1.0, 0): outcome(0.016, 0.1),
        Task("NY-travel-trees", "private_gsd", 1.0, 0): outcome(0.01, 0.001, seconds=61.0),
    }
    numbers, triples, fast = check_claims(all_questions(), outcomes, "NY")
    assert numbers.measured == 2
    assert numbers.against == ["prefixes, income, epsilon 1, max: 0.667 times"]
    assert triples.measured == 1 and not triples.against
    assert "61 s" in fast.verdict
