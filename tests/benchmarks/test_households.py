"""The benchmark of households reads both tables, measures at both levels, and reports."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.comparison.grid import Grid, run_grid
from benchmarks.comparison.outcomes import Errors, Outcome, Task
from benchmarks.comparison.problem import Comparison
from benchmarks.data import find
from benchmarks.households.claims import check_claims
from benchmarks.households.data import BINS, HouseholdColumns, Households
from benchmarks.households.job import COMPETITORS, count_truth, errors_at, judge_groups
from benchmarks.households.outcomes import TwoLevelOutcome, TwoLevelOutcomes, read
from benchmarks.households.random_join import (
    SIZE,
    groups_alone,
    individuals_alone,
    protection_of_groups,
    random_join,
)
from benchmarks.households.report import write_report
from benchmarks.households.sets import (
    COMPARISONS,
    RELATIONS,
    SETS,
    UNITS,
    Relation,
    TwoLevelProblem,
    Unit,
    protection_of,
)
from scrim.spec.two_level import TwoLevelSchema
from scrim.spec.workload import Hierarchical
from synth.queries import HierarchicalQueries
from synth.table.linking import number_keys

LARGEST = 3
HOUSEHOLDS = 400


def toy_schema() -> TwoLevelSchema:
    def column(name: str, size: int) -> dict[str, Any]:
        values = [str(code) for code in range(size)]
        return {
            "name": name,
            "type": "categorical",
            "values": values,
            "other": values[-1],
            "nullable": False,
        }

    return TwoLevelSchema.model_validate(
        {
            "groups": {"key": "id", "columns": [column("town", 2), column("rooms", 3)]},
            "individuals": {"group_key": "of", "columns": [column("sex", 2), column("age", 3)]},
            "max_group_size": LARGEST,
        }
    )


def toy_households(groups: int = HOUSEHOLDS) -> Households:
    """Fictional households: all people of a household have the same age, given by its number of rooms."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, LARGEST, groups, endpoint=True)
    group = np.repeat(np.arange(groups), sizes)
    rooms = rng.integers(3, size=groups).astype(np.uint8)
    rows = {
        "id": number_keys(group),
        "town": rng.integers(2, size=groups, dtype=np.uint8)[group],
        "rooms": rooms[group],
        "sex": rng.integers(2, size=len(group), dtype=np.uint8),
        "age": rooms[group],
    }
    return Households(toy_schema(), rows)


def toy_problem(unit: Unit = "person", relation: Relation = "replace_one") -> TwoLevelProblem:
    asked = [Hierarchical(type="hierarchical", k=3)]
    return TwoLevelProblem(toy_households(), asked, protection_of(unit, relation, LARGEST))


QUICK = {
    "random_join": {"rounds": 1, "components": 50},
    "h_mwem": {"rounds": 2},
}
TOY = Comparison("small-person", "A toy", tuple(QUICK), toy_problem, QUICK)


# Reading


ACS_HOUSEHOLDS = {
    "TEN": [1, 2, 3, 4],
    "YRBLT": [1939, 1940, 2024],
    "MULTG": [1, 2],
    "BLD": list(range(1, 11)),
    "HHT": list(range(1, 8)),
    "HHL": list(range(1, 6)),
    "MV": list(range(1, 8)),
}
ACS_PERSONS = {
    "SEX": [1, 2],
    "MAR": list(range(1, 6)),
    "RAC1P": list(range(1, 10)),
    "HISP": list(range(1, 25)),
    "CIT": list(range(1, 6)),
    "SCHL": list(range(1, 25)),
    "ESR": list(range(1, 7)),
    "LANX": [1, 2],
    "MIL": [1, 2, 3, 4],
    "COW": list(range(1, 10)),
}
OFTEN_BLANK = {"SCHL", "ESR", "LANX", "MIL", "COW"}
BOUNDS = {"RMSP": (1, 21), "BDSP": (0, 8), "HINCP": (-12_200, 2_811_900), "AGEP": (0, 96)}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, pd.DataFrame]:
    """Units and persons of a state that does not exist, written as the benchmark reads them."""
    rng = np.random.default_rng(0)
    units = pd.DataFrame(
        {
            "SERIALNO": [f"2024HU{number:07}" for number in rng.permutation(300)],
            "TYPEHUGQ": rng.choice([1, 1, 1, 2, 3], 300),
            "NP": rng.integers(0, 8, 300),
            **{name: rng.choice(codes, 300) for name, codes in ACS_HOUSEHOLDS.items()},
            **{n: rng.integers(*BOUNDS[n], 300, endpoint=True) for n in ("RMSP", "BDSP", "HINCP")},
        }
    )
    keys = units["SERIALNO"].repeat(units["NP"]).sample(frac=1, random_state=0)
    cells: dict[str, Any] = {
        name: pd.array(rng.choice(codes, len(keys)), dtype="Int64")
        for name, codes in ACS_PERSONS.items()
    }
    for name in OFTEN_BLANK:
        cells[name][rng.random(len(keys)) < 0.2] = pd.NA
    ages = rng.integers(*BOUNDS["AGEP"], len(keys), endpoint=True)
    persons = pd.DataFrame({"SERIALNO": keys.to_numpy(), **cells, "AGEP": ages})
    declared: dict[str, Any] = {"households": {}, "persons": {}}
    for table, columns in (("households", ACS_HOUSEHOLDS), ("persons", ACS_PERSONS)):
        for name, codes in columns.items():
            nullable = table == "households" or name in OFTEN_BLANK
            declared[table][name] = {"codes": codes, "nullable": nullable}
    for name, (lower, upper) in BOUNDS.items():
        table = "persons" if name == "AGEP" else "households"
        declared[table][name] = {"min": lower, "max": upper, "nullable": table == "households"}
    folder = tmp_path / "data" / "acs-pums-2024"
    folder.mkdir(parents=True)
    (folder / "schema.json").write_text(json.dumps(declared))
    units.to_csv(folder / "households_ZZ.csv.gz", index=False)
    persons.to_csv(folder / "persons_ZZ.csv.gz", index=False)
    monkeypatch.setenv("SCRIM_BENCHMARK_DATA", str(tmp_path / "data"))
    return {"units": units, "persons": persons}


@pytest.mark.parametrize("name", SETS)
def test_households_that_are_not_too_large_come_with_all_their_people(
    name: str, files: dict[str, pd.DataFrame]
) -> None:
    columns = SETS[name].columns
    found = columns.read("ZZ")
    units, persons = files["units"], files["persons"]
    kept = units[(units["TYPEHUGQ"] == 1) & units["NP"].between(1, columns.largest)]
    assert found.groups == len(kept) > 0
    assert found.individuals == kept["NP"].sum()
    assert found.schema.linked.group_attributes == list(columns.of_households)
    assert found.schema.linked.individual_attributes == list(columns.of_persons)
    # People who live together in the file are in one group.
    together = persons.merge(kept, on="SERIALNO")
    own, shared = ("SEX", "MULTG")
    codes = {name: next(found.table.codes([name]))[name] for name in (own, shared)}
    read_pairs = np.bincount(2 * codes[shared] + codes[own], minlength=4)
    true_pairs = together.groupby([shared, own]).size().reindex(product([1, 2], [1, 2]))
    assert read_pairs.tolist() == true_pairs.tolist()


def test_only_what_may_be_blank_has_a_code_for_it(files: dict[str, pd.DataFrame]) -> None:
    sizes = SETS["full"].columns.schema().linked.sizes
    assert (sizes["TEN"], sizes["HINCP"], sizes["RMSP"]) == (4, len(BINS["HINCP"]["edges"]) - 1, 21)
    assert (sizes["HISPAN"], sizes["EDUC"]) == (5, 11)
    assert (sizes["ESR"], sizes["LANX"]) == (6 + 1, 2 + 1)


def test_the_small_set_is_as_large_as_in_the_paper(files: dict[str, pd.DataFrame]) -> None:
    linked = SETS["small"].columns.schema().linked
    asked = SETS["small"].workload.expand(linked)
    assert sum(group.size(linked) for group in asked) == 1640
    households = np.prod([linked.sizes[name] for name in linked.group_attributes])
    persons = np.prod([linked.sizes[name] for name in linked.individual_attributes])
    assert households * sum(persons**size for size in range(1, 4)) == 262_080


def test_every_comparison_has_a_name_of_its_own() -> None:
    assert len({comparison.name for comparison in COMPARISONS}) == len(COMPARISONS) == 10


# Real data


def real_data() -> str | None:
    """Why the real data cannot be read; None if it can."""
    try:
        find("acs-pums-2024/persons_NY.csv.gz")
    except SystemExit as missing:
        return str(missing)
    return None


@pytest.mark.skipif(real_data() is not None, reason=str(real_data()))
def test_the_files_have_the_households_that_the_documentation_counts() -> None:
    tenures = HouseholdColumns(("TEN",), ("SEX",), largest=3).read("NY")
    assert (tenures.groups, tenures.individuals) == (64_040, 116_261)


# Errors


def test_truth_counts_groups_that_contain_somebody_and_individuals() -> None:
    problem = toy_problem()
    truth = count_truth(problem)
    private = problem.private
    frame = pd.DataFrame({name: column for name, column in private.rows.items() if name != "id"})
    frame["household"] = np.cumsum(np.r_[True, private.rows["id"][1:] != private.rows["id"][:-1]])
    expected: list[float] = []
    for block in truth.queries.blocks:
        assert isinstance(block, HierarchicalQueries)
        sizes = [private.schema.linked.sizes[name] for name in block.attributes]
        for codes in product(*(range(size) for size in sizes)):
            fulfils = np.logical_and.reduce(
                [frame[name] == code for name, code in zip(block.attributes, codes, strict=True)]
            )
            if block.level == "group":
                expected.append(frame["household"][fulfils].nunique() / private.groups)
            else:
                expected.append(fulfils.mean())
    np.testing.assert_allclose(truth.fractions, expected)


def test_errors_are_told_apart_by_level() -> None:
    truth = count_truth(toy_problem())
    fractions = truth.fractions.copy()
    [first, second] = np.flatnonzero(truth.is_at["individual"])[:2]
    fractions[[first, second]] += [0.25, -0.5]
    assert errors_at("group", fractions, truth) == Errors(0, 0)
    found = errors_at("individual", fractions, truth)
    assert found.max == pytest.approx(0.5)
    assert found.mean == pytest.approx(0.75 / truth.is_at["individual"].sum())


# The baseline


def test_tables_alone_have_all_rows() -> None:
    private = toy_households()
    groups, individuals = groups_alone(private), individuals_alone(private)
    assert (groups.rows, individuals.rows) == (private.groups, private.individuals)
    assert groups.domain.size_of == {SIZE: LARGEST, "town": 2, "rooms": 3}
    assert individuals.domain.size_of == {"sex": 2, "age": 3}
    assert (groups.codes[SIZE] + 1).sum() == private.individuals
    assert np.repeat(groups.codes["rooms"], groups.codes[SIZE] + 1).tolist() == list(
        private.rows["rooms"]
    )


@pytest.mark.parametrize(("unit", "relation"), list(product(UNITS, RELATIONS)))
def test_sizes_beside_groups_are_paid_for(unit: Unit, relation: Relation) -> None:
    alone = protection_of_groups(protection_of(unit, relation, LARGEST), toy_schema())
    # A person who joins a household changes its size: one row is removed and one is added.
    assert alone.max_rows_per_unit == (2 if (unit, relation) == ("person", "add_remove") else 1)


@pytest.mark.random
def test_people_are_dealt_to_households_at_random() -> None:
    problem = toy_problem()
    private = problem.private
    rows = random_join(problem, QUICK["random_join"], epsilon=200.0, seed=0)
    released = Households(private.schema, rows)
    assert released.groups == private.groups
    assert released.individuals == pytest.approx(private.individuals, rel=0.1)
    # In the true data rooms determine ages; in the random join they are independent.
    asked = [
        Hierarchical(type="hierarchical", attributes=[["rooms", "age"]], levels=["individual"])
    ]
    truth = count_truth(replace(problem, workload=asked))
    joint = truth.fractions_of(released).reshape(3, 3)
    assert np.trace(truth.fractions.reshape(3, 3)) == pytest.approx(1)
    # 0.011 with a standard deviation of 0.003 over runs.
    np.testing.assert_allclose(joint, np.outer(joint.sum(1), joint.sum(0)), atol=0.05)


# Grids and reports


@pytest.mark.random
def test_a_grid_is_run_and_reported(tmp_path: Path) -> None:
    results = tmp_path / "households.jsonl"
    grid = Grid(epsilons=(1.0,), runs=1)
    for _ in range(2):  # the second time nothing is left to do
        run_grid([TOY], grid, results=results, judge=judge_groups, competitors=COMPETITORS)
    outcomes = read(results)
    assert outcomes.keys() == set(grid.tasks(TOY))
    assert len(results.read_text().splitlines()) == len(outcomes)
    for task, outcome in outcomes.items():
        assert outcome.group.rows == HOUSEHOLDS < outcome.individual.rows
        assert 0 < outcome.group.answers.mean < outcome.group.answers.max < 1
        assert (outcome.group.answers == outcome.group.released_rows) == (
            task.mechanism == "random_join"
        )
    write_report([TOY], outcomes, tmp_path / "report")
    assert (tmp_path / "report" / "households-small-person.svg").read_text().startswith("<svg")
    written = (tmp_path / "report" / "households.md").read_text()
    assert "| groups: h_mwem |" in written
    assert "| individuals: random_join |" in written


def outcome_of(error: float, seconds: float = 1.0) -> TwoLevelOutcome:
    errors = Errors(error, error / 10)
    at_level = Outcome(100, 10, errors, errors, seconds, seconds, "code")
    return TwoLevelOutcome(at_level, at_level)


def test_claims_are_checked_where_both_were_measured(tmp_path: Path) -> None:
    outcomes: TwoLevelOutcomes = {
        Task("small-person", "h_gem", 1.0, 0): outcome_of(0.02),
        Task("small-person", "h_mwem", 1.0, 0): outcome_of(0.03),
        Task("small-person", "random_join", 1.0, 0): outcome_of(0.03),
        Task("small-person", "h_gem", 0.5, 0): outcome_of(0.02),
        Task("full-person-50-rounds", "h_gem", 1.0, 0): outcome_of(0.02, seconds=299.0),
    }
    closer, half, fast = check_claims(outcomes, COMPARISONS)
    assert not closer.against and not fast.against
    assert len(half.against) == 2 and "1.5 times" in half.against[0]
    slow = {Task("full-person-50-rounds", "h_gem", 1.0, 0): outcome_of(0.02, seconds=301.0)}
    *_, late = check_claims(slow, COMPARISONS)
    assert "301 s" in late.verdict
    write_report(COMPARISONS, outcomes, tmp_path)
    assert half.verdict in (tmp_path / "households.md").read_text()
    write_report(COMPARISONS, slow, tmp_path)
    report = (tmp_path / "households.md").read_text()
    assert late.verdict in report and "h_mwem at every epsilon" not in report
