"""Screening public data: charged, journaled, and able to end a release whose public rows do not fit."""

from typing import Any

import pytest

from scrim.spec.errors import PublicDataTooFar, SpecError
from scrim.spec.release import ReleaseSpec
from scrim.spec.schema import Schema
from synth.journal import MemoryJournal
from synth.planning.plan import plan
from synth.run import JobProgress, run
from synth.table import Table
from tests.support import ADD_REMOVE, coded_schema, coded_table, random_rows, release

SIZES = {"a": 2, "b": 3, "c": 4}
SCHEMA = coded_schema(SIZES)
ROWS = random_rows(SIZES, 400)
DELTA = 1e-9
FAR = [[0, 0, 0]]


def screened(name: str, **changes: Any) -> ReleaseSpec:
    screen = {"share": 0.1, "max_error": 0.3} | changes
    return release({"name": name, "screen": screen}, budget={"rho": 100.0})


def carry_out(
    spec: ReleaseSpec, table: Table, public: list[list[int]], journal: MemoryJournal
) -> dict[str, Any]:
    rows = coded_table(SCHEMA, public)
    return run(spec, table, journal, protection=ADD_REMOVE, delta=DELTA, public=rows).certificate


@pytest.mark.random
@pytest.mark.parametrize("name", ["pmw_pub", "pep_pub"])
def test_public_data_that_fit_pass_and_the_value_is_certified(name: str) -> None:
    spec, journal = screened(name), MemoryJournal()
    certificate = carry_out(spec, coded_table(SCHEMA, ROWS), ROWS[:100], journal)
    found = certificate["public_data_screen"]
    assert found["max_error"] == 0.3 and 0 < found["standard_error"] < 0.001
    assert abs(found["error"]) < 0.1  # more than a hundred standard errors above the best mixture
    assert found["queries"] == 6 + 8 + 12
    kinds = [operation.kind for operation in journal.operations()]
    assert kinds[:3] == ["rows", "best_mixture", "select"]
    assert journal.operations()[1].price == pytest.approx(0.1 * 100e12, rel=1e-6)
    assert sum(operation.price for operation in journal.operations()) <= 100 * 10**12


@pytest.mark.random
def test_public_data_that_do_not_fit_end_the_release_with_what_was_paid_for() -> None:
    spec, journal = screened("pmw_pub"), MemoryJournal()
    with pytest.raises(PublicDataTooFar) as refused:
        carry_out(spec, coded_table(SCHEMA, ROWS), FAR, journal)
    assert [operation.kind for operation in journal.operations()] == ["rows", "best_mixture"]
    value = journal.operations()[1].values[0] / 2**20 / journal.operations()[0].values[0]
    assert f"leave an error of {value:.4f}" in str(refused.value)
    assert "standard error of 0.00" in str(refused.value)
    # Resumed, it gives the same result without reading the rows.
    with pytest.raises(PublicDataTooFar) as again:
        carry_out(spec, Table(SCHEMA, []), FAR, MemoryJournal(journal.operations()))
    assert str(again.value) == str(refused.value)


@pytest.mark.random
def test_a_screen_can_be_stopped_while_it_searches() -> None:
    class Stopped(Exception):
        pass

    def stop() -> None:
        raise Stopped

    spec, journal, public = screened("pmw_pub"), MemoryJournal(), coded_table(SCHEMA, ROWS[:5])
    told: list[JobProgress] = []
    with pytest.raises(Stopped):
        run(
            spec,
            coded_table(SCHEMA, ROWS),
            journal,
            told.append,
            protection=ADD_REMOVE,
            delta=DELTA,
            public=public,
            check=stop,
        )
    assert [operation.kind for operation in journal.operations()] == ["rows"]
    assert told == []


@pytest.mark.random
def test_the_same_journal_on_neighbouring_data_gives_the_same_certificate() -> None:
    """T7 for the screen."""
    spec, journal = screened("pep_pub"), MemoryJournal()
    first = carry_out(spec, coded_table(SCHEMA, ROWS), ROWS[:100], journal)
    replayed = MemoryJournal(journal.operations())
    assert first == carry_out(spec, coded_table(SCHEMA, [*ROWS, [1, 2, 3]]), ROWS[:100], replayed)


def without(*names: str) -> Schema:
    return Schema(columns=[column for column in SCHEMA.columns if column.name not in names])


def test_columns_that_are_missing_name_the_mechanism_that_can() -> None:
    with pytest.raises(SpecError, match=r"they lack b, c; .* use gem_pub"):
        plan(release({"name": "pmw_pub"}), SCHEMA, ADD_REMOVE, 10**12, public=without("b", "c"))


@pytest.mark.random
def test_columns_that_nobody_asks_about_may_be_missing() -> None:
    asked = [{"type": "marginals", "attributes": [["a", "c"]]}]
    spec = release({"name": "pmw_pub"}, workload=asked)
    plan(spec, SCHEMA, ADD_REMOVE, 10**12, public=without("b"))
    public = Table(
        without("b"), [{"a": c["a"], "c": c["c"]} for c in coded_table(SCHEMA, ROWS).chunks()]
    )
    done = run(spec, coded_table(SCHEMA, ROWS), protection=ADD_REMOVE, delta=DELTA, public=public)
    assert done.rows is not None and set(done.rows) == {"a", "c"}


@pytest.mark.random
def test_the_screen_of_gem_pub_looks_at_the_columns_that_are_public() -> None:
    mechanism = {
        "name": "gem_pub",
        "components": 10,
        "rounds": 1,
        "steps": 1,
        "pretraining_steps": 1,
        "screen": {"share": 0.1, "max_error": 0.9},
    }
    public = Table(
        without("c"), [{"a": c["a"], "b": c["b"]} for c in coded_table(SCHEMA, ROWS).chunks()]
    )
    done = run(
        release(mechanism),
        coded_table(SCHEMA, ROWS),
        protection=ADD_REMOVE,
        delta=DELTA,
        public=public,
    )
    assert done.certificate["public_data_screen"]["queries"] == SIZES["a"] * SIZES["b"]


def test_a_screen_that_would_look_at_nothing_is_refused() -> None:
    with pytest.raises(SpecError, match=r"the workload has none; leave mechanism\.screen out"):
        plan(screened("gem_pub"), SCHEMA, ADD_REMOVE, 10**12, public=without("b", "c"))
    unscreened = release({"name": "gem_pub"})
    plan(unscreened, SCHEMA, ADD_REMOVE, 10**12, public=without("b", "c"))


def test_public_data_are_given_exactly_where_they_are_used() -> None:
    with pytest.raises(SpecError, match="needs a public dataset"):
        plan(release({"name": "pep_pub"}), SCHEMA, ADD_REMOVE, 10**12)
    with pytest.raises(SpecError, match="mwem uses no public data"):
        plan(release({"name": "mwem"}), SCHEMA, ADD_REMOVE, 10**12, public=SCHEMA)


def test_a_share_that_buys_nothing_is_refused() -> None:
    spec = screened("pmw_pub", share=1e-9)
    with pytest.raises(SpecError, match="screen"):
        plan(spec, SCHEMA, ADD_REMOVE, 10**6, public=SCHEMA)
    split = plan(screened("pmw_pub"), SCHEMA, ADD_REMOVE, 10**12, public=SCHEMA).split
    assert split.screen == 10**11
    assert split.row_count + split.screen + split.mechanism + split.certify == 10**12
