"""A release from a table of real types to rows of the same types."""

import csv
from collections.abc import Sequence
from io import BytesIO, StringIO
from typing import Any

import numpy as np
import pytest
import torch

from scrim.spec.budget import epsilon_of_units, rho_of_units
from scrim.spec.errors import DomainTooLarge, SpecError
from scrim.spec.release import ReleaseSpec
from scrim.spec.schema import Schema
from synth.domain import Domain
from synth.models.histogram import Histogram
from synth.models.released import ReleasedModel
from synth.queries import compile_workload
from synth.run import run
from synth.table import Table, read_csv, write_csv
from tests.support import ADD_REMOVE, REPLACE_ONE, coded_schema, coded_table, random_rows, release

SCHEMA = Schema.model_validate(
    {
        "columns": [
            {"name": "sex", "type": "categorical", "values": ["F", "M"]},
            {"name": "age", "type": "integer", "lower": 0, "upper": 99, "bins": {"width": 25}},
            {
                "name": "income",
                "type": "real",
                "lower": 0,
                "upper": 500,
                "decimals": 1,
                "bins": {"edges": [0, 1, 100, 500]},
                "nullable": False,
            },
            {"name": "unasked", "type": "categorical", "values": ["x", "y"], "nullable": False},
            {"name": "pid", "type": "identifier"},
        ]
    }
)
BODY = {
    "workload": [{"type": "marginals", "attributes": [["sex", "age"], ["age", "income"]]}],
    "mechanism": {"name": "pep"},
    "budget": {"rho": 5.0},
    "outputs": {"rows": 333},
}


def table() -> Table:
    rng = np.random.default_rng(3)
    lines = ["sex,age,income,unasked,pid"]
    for i in range(500):
        sex = ["F", "M", "?", ""][rng.choice(4, p=[0.5, 0.4, 0.05, 0.05])]
        lines.append(f"{sex},{rng.integers(-5, 120)},{rng.exponential(80):.2f},x,{i}")
    source = BytesIO("\n".join(lines).encode())
    return Table(SCHEMA, list(read_csv(source, SCHEMA)))


@pytest.mark.random
def test_rows_have_the_declared_types_and_bounds() -> None:
    done = run(ReleaseSpec.model_validate(BODY), table(), protection=ADD_REMOVE, delta=1e-9)
    assert done.rows is not None
    target = BytesIO()
    write_csv(target, done.model.schema, [done.rows])
    rows = list(csv.DictReader(StringIO(target.getvalue().decode())))
    assert len(rows) == 333
    # Neither identifiers nor columns without a query.
    assert list(rows[0]) == ["sex", "age", "income"]
    assert {row["sex"] for row in rows} <= {"F", "M", "other", ""}
    assert all(row["age"] == "" or 0 <= int(row["age"]) <= 99 for row in rows)
    assert all(0 <= float(row["income"]) <= 500 for row in rows)
    assert all(len(row["income"].partition(".")[2]) == 1 for row in rows)


@pytest.mark.random
def test_answers_are_labelled_and_scaled() -> None:
    done = run(ReleaseSpec.model_validate(BODY), table(), protection=REPLACE_ONE, delta=1e-9)
    assert done.answers is not None
    assert done.answers.items[0] == "sex,age"
    assert done.answers.queries[0] == "sex=F & age=[0, 25)"
    assert done.answers.queries[-1] == "age=missing & income=[100, 500]"
    np.testing.assert_allclose(done.answers.counts, 500 * done.answers.fractions)


@pytest.mark.random
def test_the_certificate_says_what_was_done() -> None:
    done = run(ReleaseSpec.model_validate(BODY), table(), protection=ADD_REMOVE, delta=1e-9)
    certificate = done.certificate
    assert certificate["protection"] == {"unit": "row", "relation": "add_remove"}
    assert certificate["rho_units"] == sum(o["rho_units"] for o in certificate["operations"])
    assert [o["kind"] for o in certificate["operations"]] == ["rows", *["select", "measure"] * 2]
    assert set(certificate["epsilon"]) == {"1e-06", "1e-09", "1e-12"}
    budget = ReleaseSpec.model_validate(BODY).budget.units(1e-9)
    assert certificate["rho_units"] < certificate["rho_units_reserved"] == budget
    assert certificate["rho_reserved"] == rho_of_units(budget)
    for delta, epsilon in certificate["epsilon_reserved"].items():
        assert epsilon == epsilon_of_units(budget, float(delta)) > certificate["epsilon"][delta]
    assert certificate["release"]["mechanism"]["name"] == "pep"
    assert len(certificate["schema_sha256"]) == 64


@pytest.mark.random
def test_a_released_model_answers_questions_nobody_asked_before() -> None:
    done = run(ReleaseSpec.model_validate(BODY), table(), protection=ADD_REMOVE, delta=1e-9)
    model = ReleasedModel.from_bytes(done.model.to_bytes())
    asked = ReleaseSpec.model_validate(
        BODY | {"workload": [{"type": "marginals", "attributes": [["sex", "income"]]}]}
    )
    answers = model.answer(asked.workload)
    assert answers.fractions.sum() == pytest.approx(1.0)
    assert len(model.sample(7, seed=1)["income"]) == 7


def test_what_cannot_work_is_refused_before_anything_is_touched() -> None:
    class Untouchable(Table):
        def chunks(self) -> Any:
            raise AssertionError("the rows were touched")

        def codes(self, attributes: Sequence[str]) -> Any:
            raise AssertionError("the rows were touched")

    wide = coded_schema({f"c{i}": 10 for i in range(9)})
    with pytest.raises(DomainTooLarge, match=r"1,000,000,000 combinations.*gaussian"):
        run(release({"name": "mwem"}), Untouchable(wide, []), protection=ADD_REMOVE, delta=1e-9)
    with pytest.raises(SpecError, match="the budget is too small"):
        spec = release({"name": "mwem", "rounds": 10_000, "per_round": 1000}, budget={"rho": 1e-9})
        run(
            spec, Untouchable(coded_schema({"a": 2, "b": 2}), []), protection=ADD_REMOVE, delta=1e-9
        )


@pytest.mark.random
def test_what_is_measured_and_what_is_asked_are_two_things() -> None:
    sizes = {"a": 2, "b": 3, "c": 2}
    schema = coded_schema(sizes)
    spec = release(
        {"name": "pep", "measure": [{"type": "marginals", "k": 2}], "rounds": 6},
        workload=[{"type": "marginals", "k": 3}],
        budget={"rho": 1000.0},
    )
    rows = random_rows(sizes, 1000)
    done = run(spec, coded_table(schema, rows), protection=REPLACE_ONE, delta=1e-9)
    measured = {o["asked"] for o in done.certificate["operations"] if o["kind"] == "measure"}
    assert measured <= {"a,b", "a,c", "b,c"}
    assert done.answers is not None and set(done.answers.items) == {"a,b,c"}


def test_sampling_keeps_every_cell_within_one_row_of_its_share() -> None:
    schema = coded_schema({"a": 5, "b": 7})
    weights = np.random.default_rng(0).dirichlet(np.ones(35)).reshape(5, 7)
    histogram = Histogram(Domain.of(schema), torch.from_numpy(weights))
    codes = histogram.sample(1000, np.random.default_rng(1))
    drawn = np.zeros((5, 7))
    np.add.at(drawn, (codes["a"], codes["b"]), 1)
    assert np.abs(drawn - 1000 * weights).max() <= 1


@pytest.mark.statistical
def test_certified_error_covers_the_true_one() -> None:
    """On public data: the bound must hold in at least 95% of runs, and usually in more."""
    sizes = {"a": 3, "b": 4}
    schema, rows = coded_schema(sizes), random_rows(sizes, 300)
    spec = release(
        {"name": "pep"},
        budget={"rho": 0.05},
        outputs={"rows": 100, "certify": {"share": 0.2, "confidence": 0.95}},
    )
    private = coded_table(schema, rows)
    queries = compile_workload(spec.workload, schema)
    true = queries.count(private) / len(rows)
    covered = 0
    for seed in range(200):
        done = run(spec, private, protection=REPLACE_ONE, delta=1e-9, seed=seed)
        assert done.rows is not None
        drawn = coded_table(schema, np.stack([done.rows[n] for n in sizes], axis=1).tolist())
        error = np.abs(queries.count(drawn) / 100 - true).max()
        covered += error <= done.certificate["certified_max_error"]["alpha"]
    assert covered >= 172  # at a coverage of exactly 0.95, fewer have probability below 1e-6
