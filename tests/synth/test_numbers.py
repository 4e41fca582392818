"""Numbers without bins, from the table to the released rows.

Every figure is at least seven standard deviations (over runs) away from its limit: 1e-11 by chance.
"""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from scrim.spec.errors import SpecError
from scrim.spec.population import Protection
from scrim.spec.release import ReleaseSpec
from scrim.spec.schema import Schema
from synth.journal import MemoryJournal
from synth.models.released import ReleasedModel
from synth.planning.plan import plan
from synth.queries import compile_workload
from synth.run import FinishedRelease, run
from synth.table import Table, store_numbers

pytestmark = pytest.mark.random

SCHEMA = Schema.model_validate(
    {
        "columns": [
            {"name": "sex", "type": "categorical", "values": ["F", "M"], "other": "M"},
            {"name": "age", "type": "integer", "lower": -5, "upper": 94},
            {"name": "pay", "type": "real", "lower": 0, "upper": 1000, "decimals": 1},
            {"name": "height", "type": "real", "lower": 1.0, "upper": 2.5, "nullable": False},
            {"name": "who", "type": "identifier"},
        ]
    }
)
EVERYTHING = [
    {"type": "marginals", "k": 1},
    {"type": "binary_tree", "k": 1, "levels": 4},
    {"type": "binary_tree", "k": 2, "levels": 2},
    {"type": "ranges", "k": 2, "count": 20, "seed": 1},
    {"type": "prefixes", "count": 20, "seed": 2},
    {"type": "halfspaces", "count": 20, "seed": 3},
]
MECHANISMS: dict[str, dict[str, Any]] = {
    "private_gsd": {"name": "private_gsd", "rows": 200, "rounds": 5, "per_round": 20},
    "private_gsd, one shot": {"name": "private_gsd", "mode": "one_shot", "rows": 200},
    "rap++": {
        "name": "rap_plus_plus",
        "rows": 100,
        "steps": 30,
        "learning_rate": 0.05,
        "last_temperature": 64.0,
        "rounds": 3,
        "per_round": 30,
    },
}
ROWS, MISSING = 2000, 0.3
CONFIDENCE = 0.999999
"""The bound adds sqrt(2 ln 1e6) = 5.26 standard deviations: the noise exceeds it with probability 7e-8."""
DELTA = 1e-9


@pytest.fixture(params=MECHANISMS, scope="module")
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def mechanism(name: str) -> dict[str, Any]:
    return MECHANISMS[name]


def table(rows: int = ROWS) -> Table:
    """Old people earn more, and three in ten do not say what."""
    rng = np.random.default_rng(5)
    age = rng.integers(-5, 95, rows).astype(float)
    pay = np.clip(age * 8 + rng.normal(0, 50, rows), 0, 1000)
    pay[rng.random(rows) < MISSING] = np.nan
    numbers = {
        "sex": rng.integers(0, 2, rows).astype(float),
        "age": age,
        "pay": pay,
        "height": rng.normal(1.7, 0.1, rows),
    }
    return Table(SCHEMA, [store_numbers(SCHEMA, numbers)])


def order(mechanism: dict[str, Any], workload: Any = EVERYTHING, **outputs: Any) -> ReleaseSpec:
    body = {
        "workload": workload,
        "mechanism": mechanism,
        "budget": {"rho": 20.0},
        "outputs": {"rows": 700, **outputs},
        "expected_rows": ROWS,
    }
    return ReleaseSpec.model_validate_json(json.dumps(body))


def carry_out(spec: ReleaseSpec, **options: Any) -> FinishedRelease:
    return run(spec, table(), protection=Protection(), delta=DELTA, **options)


@dataclass(frozen=True)
class Finished:
    """A release that was carried out."""

    spec: ReleaseSpec
    journal: MemoryJournal
    release: FinishedRelease


@pytest.fixture(scope="module")
def finished(name: str) -> Finished:
    """A certified release of all kinds of queries, made once for the tests that only look at it."""
    spec = order(MECHANISMS[name], certify={"share": 0.1, "confidence": CONFIDENCE})
    journal = MemoryJournal()
    return Finished(spec, journal, carry_out(spec, journal=journal))


def counted(finished: Finished, rows: Table) -> NDArray[np.int64]:
    """The workload's counts of some rows, by the bins that the release placed."""
    schema = finished.release.model.schema
    return compile_workload(finished.spec.workload, schema).count(rows.project(schema))


def test_rows_have_the_declared_types_bounds_and_digits(finished: Finished) -> None:
    rows = finished.release.rows
    assert rows is not None and len(rows["sex"]) == 700
    assert rows["sex"].dtype == np.uint8 and rows["sex"].max() <= 2
    assert rows["age"].dtype == np.uint8 and rows["age"].max() <= 100
    pay = rows["pay"][~np.isnan(rows["pay"])]
    assert pay.min() >= 0 and pay.max() <= 1000
    assert np.array_equal(pay, np.round(pay, 1))
    assert not np.isnan(rows["height"]).any()
    assert rows["height"].min() >= 1.0 and rows["height"].max() <= 2.5
    assert len(np.unique(rows["height"])) > 20, "numbers are not cut into bins"
    assert not any(bytes(digest).strip(b"\0") for digest in rows["who"])


def test_the_missing_share_is_kept(mechanism: dict[str, Any]) -> None:
    rows = carry_out(order(mechanism, [{"type": "binary_tree", "k": 2, "levels": 3}])).rows
    assert rows is not None
    assert np.isnan(rows["pay"]).mean() == pytest.approx(MISSING, abs=0.06)


def test_answers_are_near_the_truth(finished: Finished) -> None:
    truth = counted(finished, table()) / ROWS
    assert finished.release.answers is not None
    errors = np.abs(finished.release.answers.fractions - truth)
    assert errors.mean() < 0.02 and errors.max() < 0.2


def test_dependence_is_learnt(mechanism: dict[str, Any]) -> None:
    workload = [{"type": "binary_tree", "attributes": [["age", "pay"]], "levels": 3}]
    rows = carry_out(order(mechanism, workload)).rows
    assert rows is not None
    there = ~np.isnan(rows["pay"])
    ages, pay = rows["age"][there].astype(float), rows["pay"][there]
    assert np.corrcoef(ages, pay)[0, 1] > 0.5


def test_a_model_survives_saving_and_answers_anything(finished: Finished) -> None:
    model, asked = finished.release.model, finished.spec.workload
    loaded = ReleasedModel.from_bytes(model.to_bytes())
    assert np.array_equal(loaded.answer(asked).fractions, model.answer(asked).fractions)
    first, second = model.sample(50, 1), loaded.sample(50, 1)
    assert all(np.array_equal(first[n], second[n], equal_nan=n == "pay") for n in ("age", "pay"))


def test_a_resumed_job_releases_the_same(finished: Finished) -> None:
    first, empty = finished.release, Table(SCHEMA, [])
    again = run(finished.spec, empty, finished.journal, protection=Protection(), delta=DELTA)
    assert first.rows is not None and again.rows is not None
    assert np.array_equal(first.rows["age"], again.rows["age"])
    assert first.certificate["certified_max_error"] == again.certificate["certified_max_error"]


def test_a_certified_bound_covers_numbers(finished: Finished) -> None:
    done = finished.release
    assert done.rows is not None
    released = counted(finished, Table(SCHEMA, [done.rows])) / 700
    # The bound is about counts of the rows against their measured number (docs/privacy.md, section 5).
    largest = np.abs(released - counted(finished, table()) / done.model.estimated_rows).max()
    assert largest <= done.certificate["certified_max_error"]["alpha"]


@pytest.mark.parametrize("item", EVERYTHING[1:], ids=lambda item: str(item["type"]))
def test_models_of_bins_refuse_what_they_cannot_read(item: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match=r"needs bins|cannot answer"):
        plan(order({"name": "gem"}, [item]), SCHEMA, Protection(), 10**12)
