"""What every mechanism promises, whatever it does inside.

To add a mechanism, add one entry to MECHANISMS; a test checks that none of the catalogue is missing.
"""

import inspect
from typing import Any

import numpy as np
import pytest

from synth.privacy.accountant import BudgetExceeded
from synth.privacy.journal import JournalMismatch, MemoryJournal, Operation
from synth.privacy.vault import Vault
from synth.queries import compile_workload
from synth.run import Release, run
from synth.spec.mechanism import MECHANISMS as CATALOGUE
from synth.spec.population import Protection
from synth.spec.release import ReleaseSpec
from synth.spec.schema import Schema
from synth.table import Table
from tests.support import (
    ADD_REMOVE,
    PROTECTIONS,
    REPLACE_ONE,
    coded_schema,
    coded_table,
    public_table,
    random_rows,
    release,
)

SMALL_NETWORK = {"latent": 8, "hidden": [16], "steps": 100, "learning_rate": 0.02}
MECHANISMS: dict[str, dict[str, Any]] = {
    "gaussian": {"name": "gaussian"},
    "gaussian, raw": {"name": "gaussian", "consistent": False},
    "mwem": {"name": "mwem"},
    "mwem, newest only, average": {"name": "mwem", "past_measurements": False, "output": "average"},
    "mwem, queries": {"name": "mwem", "select": "queries", "per_round": 2, "rounds": 3},
    "pep": {"name": "pep"},
    "pep, queries": {"name": "pep", "select": "queries", "per_round": 2, "rounds": 3},
    "pmw_pub": {"name": "pmw_pub"},
    "pmw_pub, newest only, average": {
        "name": "pmw_pub",
        "past_measurements": False,
        "output": "average",
    },
    "pmw_pub, queries": {"name": "pmw_pub", "select": "queries", "per_round": 2, "rounds": 3},
    "pep_pub": {"name": "pep_pub"},
    "relaxed projection": {"name": "relaxed_projection", "components": 50, "steps": 400},
    "generative network": {"name": "generative_network", "components": 50, **SMALL_NETWORK},
    "gem": {"name": "gem", "components": 50, **SMALL_NETWORK},
    "gem, as the paper": {
        "name": "gem",
        "components": 50,
        "select": "queries",
        "per_round": 2,
        "rounds": 3,
        "loss": "absolute",
        "average": True,
        "opening_share": 0.0,
        **SMALL_NETWORK,
    },
    "gem_plus": {"name": "gem_plus", "components": 50, "rounds": 6, **SMALL_NETWORK},
    "mwem, annealed": {"name": "mwem", "schedule": "annealed", "score": "total_error"},
    "pep, annealed, queries": {
        "name": "pep",
        "schedule": "annealed",
        "score": "total_error",
        "select": "queries",
        "per_round": 2,
        "rounds": 4,
    },
    "gem_pub": {"name": "gem_pub", "components": 50, "pretraining_steps": 50, **SMALL_NETWORK},
    "rap softmax": {"name": "rap_softmax", "components": 50, "steps": 50},
    "rap": {"name": "rap", "components": 50, "steps": 50},
    "private_gsd": {"name": "private_gsd", "mode": "adaptive", "rows": 100, "generations": 300},
    "private_gsd, one shot": {
        "name": "private_gsd",
        "mode": "one_shot",
        "rows": 100,
        "generations": 300,
    },
    "private_gsd, queries": {
        "name": "private_gsd",
        "mode": "adaptive",
        "select": "queries",
        "per_round": 2,
        "rounds": 3,
        "rows": 100,
        "generations": 300,
    },
    "rap++": {"name": "rap_plus_plus", "rows": 50, "steps": 5, "last_temperature": 4.0},
}
SIZES = {"a": 2, "b": 3, "c": 4}
SCHEMA = coded_schema(SIZES)
ROWS = random_rows(SIZES, 60)
DELTA = 1e-9


@pytest.fixture(params=MECHANISMS)
def mechanism(request: pytest.FixtureRequest) -> dict[str, Any]:
    return MECHANISMS[request.param]


def carry_out(
    spec: ReleaseSpec,
    table: Table,
    journal: MemoryJournal | None = None,
    protection: Protection = ADD_REMOVE,
    **options: Any,
) -> Release:
    if spec.mechanism.needs_public_data:
        options["public"] = public_table(table.schema)
    return run(spec, table, journal, protection=protection, delta=DELTA, **options)


def check_valid(done: Release, spec: ReleaseSpec, schema: Schema) -> None:
    """Rows as many as asked and inside the declared domain; finite answers for every query."""
    if spec.rows is None:
        assert done.rows is None
    else:
        assert done.rows is not None
        assert set(done.rows) == {column.name for column in schema.attributes}
        for column in schema.attributes:
            values = done.rows[column.name]
            assert len(values) == spec.rows
            assert values.min() >= 0 and values.max() < column.size
    assert done.answers is not None
    assert np.isfinite(done.answers.fractions).all()
    assert len(done.answers.fractions) == compile_workload(spec.workload, schema).size


def test_every_mechanism_of_the_catalogue_is_here() -> None:
    assert {m["name"] for m in MECHANISMS.values()} == {c.catalogue_name() for c in CATALOGUE}


@pytest.mark.parametrize(
    ("sizes", "rows", "k"),
    [
        (SIZES, 60, 2),
        ({"only": 3}, 20, 1),
        ({"constant": 1}, 20, 1),
        ({"constant": 1, "b": 2}, 20, 2),
        (SIZES, 1, 2),
        (SIZES, 0, 2),
        ({"wide": 200, "b": 2}, 30, 1),
    ],
    ids=["plain", "one column", "one value", "a constant", "one row", "no rows", "wide"],
)
@pytest.mark.parametrize("protection", [ADD_REMOVE, REPLACE_ONE], ids=lambda p: p.relation)
def test_valid_output_on_odd_domains(
    mechanism: dict[str, Any], sizes: dict[str, int], rows: int, k: int, protection: Protection
) -> None:
    schema = coded_schema(sizes)
    spec = release(mechanism, workload=[{"type": "marginals", "k": k}])
    table = coded_table(schema, random_rows(sizes, rows))
    check_valid(carry_out(spec, table, protection=protection), spec, schema)


@pytest.mark.parametrize("rho", [1e-8, 1e-3])
def test_tiny_budgets_still_give_valid_output(mechanism: dict[str, Any], rho: float) -> None:
    spec = release(mechanism, budget={"rho": rho})
    check_valid(carry_out(spec, coded_table(SCHEMA, ROWS)), spec, SCHEMA)


def test_huge_budget_approaches_the_truth(mechanism: dict[str, Any]) -> None:
    changes: dict[str, Any] = {"budget": {"rho": 1000.0}}
    settings = dict(mechanism)
    if mechanism["name"] != "gaussian":
        if mechanism["name"] in {"relaxed_projection", "generative_network"}:
            settings |= {"steps": 1000}
        else:
            settings |= {"rounds": 40}
        if mechanism["name"] == "private_gsd":  # a hundred rows cannot be closer than a hundredth
            settings |= {"rows": 1000, "generations": 10_000}
        if mechanism["name"] == "rap_plus_plus":
            settings |= {
                "rounds": 5,
                "steps": 100,
                "learning_rate": 0.02,
                "last_temperature": 256.0,
            }
        if mechanism["name"] in {"mwem", "pmw_pub"}:
            settings |= {"passes": 2000}
        changes["outputs"] = {"rows": 5000}
    rows = random_rows(SIZES, 2000)
    table = coded_table(SCHEMA, rows)
    spec = release(settings, **changes)
    done = carry_out(spec, table, protection=REPLACE_ONE)
    queries = compile_workload(spec.workload, SCHEMA)
    true = queries.count(table) / len(rows)
    assert done.answers is not None
    # An average over all rounds remembers the start, and a relaxation that is made a distribution or
    # rows afterwards moves: neither is expected to be close.
    is_rough = mechanism.get("output") == "average" or mechanism["name"] in {
        "rap",
        "rap_plus_plus",
    }
    tolerance = 0.08 if is_rough or mechanism.get("average") else 0.01
    assert np.abs(done.answers.fractions - true).max() < tolerance
    if done.rows is not None:
        drawn = coded_table(SCHEMA, np.stack([done.rows[n] for n in SIZES], axis=1).tolist())
        assert np.abs(queries.count(drawn) / 5000 - true).max() < tolerance + 0.01


@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda p: f"{p.unit}-{p.relation}")
def test_spends_at_most_its_budget_and_nearly_all_of_it(
    mechanism: dict[str, Any], protection: Protection
) -> None:
    spec = release(mechanism)
    journal = MemoryJournal()
    done = carry_out(spec, coded_table(SCHEMA, ROWS), journal, protection)
    budget = spec.budget.units(DELTA)
    spent = sum(operation.price for operation in journal.operations())
    assert 0.999 * budget <= spent <= budget
    assert done.certificate["rho_units"] == spent


@pytest.mark.parametrize("name", [n for n, m in MECHANISMS.items() if m["name"] != "gaussian"])
def test_certifying_is_paid_from_the_same_budget(name: str) -> None:
    spec = release(MECHANISMS[name], outputs={"rows": 50, "certify": {"share": 0.1}})
    journal = MemoryJournal()
    done = carry_out(spec, coded_table(SCHEMA, ROWS), journal)
    last = journal.operations()[-1]
    assert last.kind == "certify"
    assert last.price == pytest.approx(0.1 * spec.budget.units(DELTA), rel=1e-6)
    assert sum(o.price for o in journal.operations()) <= spec.budget.units(DELTA)
    assert done.certificate["certified_max_error"]["alpha"] > 0


class Forbidden(Table):
    """A table that nobody may read."""

    def chunks(self) -> Any:
        raise AssertionError("the rows were touched")

    def codes(self, names: Any) -> Any:
        raise AssertionError("the rows were touched")


class Watched(Table):
    """A table that may be read by the vault alone."""

    def chunks(self) -> Any:
        self._refuse_strangers()
        return super().chunks()

    def codes(self, names: Any) -> Any:
        self._refuse_strangers()
        return super().codes(names)

    def _refuse_strangers(self) -> None:
        readers = [frame.frame.f_locals.get("self") for frame in inspect.stack()]
        assert any(isinstance(reader, Vault) for reader in readers), (
            "the rows were read outside the door"
        )


def test_never_touches_rows_outside_the_door(mechanism: dict[str, Any]) -> None:
    plain = coded_table(SCHEMA, ROWS)
    spec = release(mechanism)
    check_valid(carry_out(spec, Watched(SCHEMA, list(plain.chunks()))), spec, SCHEMA)


def same_operation(a: Operation, b: Operation) -> bool:
    return (a.kind, a.asked, a.scale, a.price) == (b.kind, b.asked, b.scale, b.price) and (
        a.values.tolist() == b.values.tolist()
    )


def test_resumes_from_every_prefix_of_its_journal(mechanism: dict[str, Any]) -> None:
    spec, table = release(mechanism), coded_table(SCHEMA, ROWS)
    journal = MemoryJournal()
    carry_out(spec, table, journal)
    complete = journal.operations()
    is_annealed = getattr(spec.mechanism, "schedule", None) == "annealed"
    for length in range(len(complete) + 1):
        resumed = MemoryJournal(complete[:length])
        last = length == len(complete)
        check_valid(
            carry_out(spec, Forbidden(SCHEMA, []) if last else table, resumed), spec, SCHEMA
        )
        again = resumed.operations()
        # With other noise after the prefix, annealed rounds may be more or fewer.
        assert len(again) == len(complete) or (is_annealed and not last)
        assert all(same_operation(a, b) for a, b in zip(again[:length], complete, strict=False))
        assert sum(o.price for o in again) <= spec.budget.units(DELTA)


def outputs(done: Release) -> tuple[Any, ...]:
    rows = None if done.rows is None else {n: v.tobytes() for n, v in done.rows.items()}
    assert done.answers is not None
    return rows, done.answers.fractions.tobytes(), done.model.to_bytes(), str(done.certificate)


def test_same_journal_on_neighbouring_data_gives_identical_output(
    mechanism: dict[str, Any],
) -> None:
    """T7: everything after a committed outcome is a function of the journal alone."""
    spec = release(mechanism)
    journal = MemoryJournal()
    reported: list[list[Any]] = [[], []]
    first = carry_out(spec, coded_table(SCHEMA, ROWS), journal, progress=reported[0].append)
    neighbour = coded_table(SCHEMA, [*ROWS, [1, 2, 3]])
    replayed = MemoryJournal(journal.operations())
    second = carry_out(spec, neighbour, replayed, progress=reported[1].append)
    assert outputs(first) == outputs(second)
    assert [(p.done, p.total) for p in reported[0]] == [(p.done, p.total) for p in reported[1]]


def test_post_processing_is_decided_by_the_seed(mechanism: dict[str, Any]) -> None:
    spec, table = release(mechanism), coded_table(SCHEMA, ROWS)
    journal = MemoryJournal()
    first = carry_out(spec, table, journal, seed=5)
    same = carry_out(spec, table, MemoryJournal(journal.operations()), seed=5)
    other = carry_out(spec, table, MemoryJournal(journal.operations()), seed=6)
    assert outputs(first) == outputs(same)
    if first.rows is not None:
        assert outputs(first)[0] != outputs(other)[0]


def test_fresh_noise_in_every_run(mechanism: dict[str, Any]) -> None:
    spec, table = release(mechanism), coded_table(SCHEMA, ROWS)
    first, second = (carry_out(spec, table, seed=5) for _ in range(2))
    assert outputs(first)[2] != outputs(second)[2]


def test_a_journal_of_another_release_is_refused(mechanism: dict[str, Any]) -> None:
    journal = MemoryJournal()
    carry_out(release(mechanism), coded_table(SCHEMA, ROWS), journal)
    other = release(mechanism, workload=[{"type": "marginals", "k": 1}])
    with pytest.raises(JournalMismatch):
        carry_out(other, coded_table(SCHEMA, ROWS), MemoryJournal(journal.operations()))


def test_a_certified_error_is_not_passed_on_to_other_rows() -> None:
    """A resumed job that fits a slightly different model may draw rows that nobody certified."""
    spec = release(MECHANISMS["mwem"], outputs={"rows": 50, "certify": {"share": 0.1}})
    table, journal = coded_table(SCHEMA, ROWS), MemoryJournal()
    first = carry_out(spec, table, journal, seed=5)
    same = carry_out(spec, table, MemoryJournal(journal.operations()), seed=5)
    assert outputs(first) == outputs(same)
    with pytest.raises(JournalMismatch):
        carry_out(spec, table, MemoryJournal(journal.operations()), seed=6)


def test_a_journal_over_the_budget_is_refused(mechanism: dict[str, Any]) -> None:
    journal = MemoryJournal()
    carry_out(release(mechanism), coded_table(SCHEMA, ROWS), journal)
    with pytest.raises(BudgetExceeded):
        carry_out(
            release(mechanism, budget={"rho": 0.1}),
            coded_table(SCHEMA, ROWS),
            MemoryJournal(journal.operations()),
        )


def test_an_uncommitted_outcome_is_never_used(mechanism: dict[str, Any]) -> None:
    class Failing(MemoryJournal):
        def commit(self, operation: Operation) -> None:
            raise ConnectionError("the ledger is gone")

    with pytest.raises(ConnectionError):
        carry_out(release(mechanism), coded_table(SCHEMA, ROWS), Failing())


def test_the_released_model_survives_saving(mechanism: dict[str, Any], tmp_path: Any) -> None:
    spec = release(mechanism)
    done = carry_out(spec, coded_table(SCHEMA, ROWS))
    done.model.save(tmp_path / "model")
    loaded = type(done.model).load(tmp_path / "model")
    assert done.answers is not None
    again = loaded.answer(spec.workload)
    np.testing.assert_allclose(again.fractions, done.answers.fractions, atol=1e-6)
    assert again.queries == done.answers.queries
    if spec.rows is not None:
        assert len(loaded.sample(17, seed=3)["a"]) == 17


def test_progress_ends_complete_and_within_budget(mechanism: dict[str, Any]) -> None:
    seen: list[Any] = []
    spec = release(mechanism)
    carry_out(spec, coded_table(SCHEMA, ROWS), progress=seen.append)
    assert seen[-1].done == seen[-1].total
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert seen[-1].spent <= spec.budget.units(DELTA)
