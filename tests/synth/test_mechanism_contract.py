"""The contract of every mechanism.

Every mechanism of the catalogue is here, with the parameters of tests/synth/mechanism_settings.py.

Every test draws fresh noise. Most hold for any noise. Those that do not say how likely they fail.
"""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from scrim.spec.errors import SpecError
from scrim.spec.mechanism import MECHANISMS as CATALOGUE
from scrim.spec.population import Protection
from scrim.spec.release import ReleaseSpec
from scrim.spec.schema import Schema
from scrim.spec.two_level import LinkedSchema
from synth.journal import JournalMismatch, MemoryJournal, Operation
from synth.privacy.accountant import BudgetExceeded
from synth.privacy.vault import Vault
from synth.queries import QuerySet, compile_workload
from synth.rules.row_rules import RowRules
from synth.run import FinishedRelease, JobProgress, run
from synth.table import Chunk, Table
from synth.table.linking import starts_of_groups
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
from tests.synth.linked import (
    Household,
    household,
    linked_table,
    random_households,
    two_level_schema,
)
from tests.synth.mechanism_settings import CONTRACT, settings_near_the_truth
from tests.worker.report.support import about
from worker.report import render

pytestmark = pytest.mark.random

GAMES = {"dual_query", "fem", "query_gan"}
"""Mechanisms that release an average over their rounds."""
TWO_LEVEL = {spec.catalogue_name() for spec in CATALOGUE if not spec.one_level}
SIZES = {"a": 2, "b": 3, "c": 4}
SCHEMA = coded_schema(SIZES)
ROWS = random_rows(SIZES, 60)
LINKED = two_level_schema({"a": 2, "b": 3}, {"c": 4}, 3).linked
HOUSEHOLDS = random_households(LINKED, 60)
DELTA = 1e-9


@dataclass(frozen=True)
class Finished:
    """A finished release, and its reports of progress."""

    spec: ReleaseSpec
    table: Table
    operations: Sequence[Operation]
    progress: list[Any]
    release: FinishedRelease

    def journal(self) -> MemoryJournal:
        """A copy of the journal that it left."""
        return MemoryJournal(self.operations)


# Grouped by mechanism, so that tests share its release.
@pytest.fixture(params=CONTRACT, scope="module")
def mechanism(request: pytest.FixtureRequest) -> dict[str, Any]:
    return CONTRACT[request.param]


@pytest.fixture(scope="module")
def finished(mechanism: dict[str, Any]) -> Finished:
    """The mechanism's release of the plain table."""
    spec, table, journal = ask(mechanism), private_table(mechanism), MemoryJournal()
    progress: list[Any] = []
    done = carry_out(spec, table, journal, progress=progress.append)
    return Finished(spec, table, journal.operations(), progress, done)


def is_linked(mechanism: dict[str, Any]) -> bool:
    return mechanism["name"] in TWO_LEVEL


def ask(mechanism: dict[str, Any], *, k: int = 2, **changes: Any) -> ReleaseSpec:
    """All tables of k columns, counted in rows, or in groups and individuals."""
    if is_linked(mechanism):
        workload = [{"type": "hierarchical", "k": k}, {"type": "group_sizes"}]
    else:
        workload = [{"type": "marginals", "k": k}]
    return release(mechanism, workload=workload, **changes)


def private_table(mechanism: dict[str, Any], *, with_one_more: bool = False) -> Table:
    """The rows that the mechanism works on, of a table or of groups, or a neighbour."""
    if is_linked(mechanism):
        more: list[Household] = [((1, 2), ((3,), (0,)))] if with_one_more else []
        return linked_table(LINKED, [*HOUSEHOLDS, *more])
    return coded_table(SCHEMA, [*ROWS, [1, 2, 3]] if with_one_more else ROWS)


def protection_for(mechanism: dict[str, Any], protection: Protection) -> Protection:
    """The protection; households instead of rows if the rows are linked."""
    if is_linked(mechanism) and protection.unit == "row":
        return household(3, protection.relation)
    return protection


def carry_out(
    spec: ReleaseSpec,
    table: Table,
    journal: MemoryJournal | None = None,
    protection: Protection = ADD_REMOVE,
    **options: Any,
) -> FinishedRelease:
    if spec.mechanism.needs_public_data:
        options["public"] = public_table(table.schema)
    protection = protection_for({"name": spec.mechanism.name}, protection)
    return run(spec, table, journal, protection=protection, delta=DELTA, **options)


def check_valid(done: FinishedRelease, spec: ReleaseSpec, schema: Schema) -> None:
    """Rows as many as asked and inside the declared domain; finite answers for every query."""
    if spec.synthetic_rows is None:
        assert done.rows is None
    else:
        assert done.rows is not None
        assert set(done.rows) == {column.name for column in schema.columns}
        assert number_of(done.rows, schema) == spec.synthetic_rows
        for column in schema.attributes:
            values = done.rows[column.name]
            assert values.min() >= 0 and values.max() < column.size
        if isinstance(schema, LinkedSchema):
            check_groups(done.rows, schema)
    assert done.answers is not None
    assert np.isfinite(done.answers.fractions).all()
    assert len(done.answers.fractions) == compile_workload(spec.workload, schema).size
    is_exact = spec.mechanism.name == "gaussian"  # counts that no unit can move have no error
    for errors in (done.answers.standard_errors, done.answers.count_standard_errors):
        assert errors is not None and np.isfinite(errors).all()
        assert np.all(errors >= 0) if is_exact else np.all(errors > 0)


def number_of(rows: Chunk, schema: Schema) -> int:
    """Rows, or groups."""
    if isinstance(schema, LinkedSchema):
        return len(starts_of_groups(rows[schema.key]))
    return len(next(iter(rows.values())))


def check_groups(rows: Chunk, schema: LinkedSchema) -> None:
    """No group is empty or too large, and its own columns are the same for all its individuals."""
    starts = starts_of_groups(rows[schema.key])
    sizes = np.diff(starts, append=len(rows[schema.key]))
    assert sizes.min() >= 1 and sizes.max() <= schema.max_group_size
    for name in schema.group_attributes:
        assert (np.repeat(rows[name][starts], sizes) == rows[name]).all()


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
    spec = ask(mechanism, k=k)
    if is_linked(mechanism):
        of_groups = {name: sizes[name] for name in list(sizes)[: len(sizes) // 2]}
        own = {name: size for name, size in sizes.items() if name not in of_groups}
        linked = two_level_schema(of_groups, own, 3).linked
        table = linked_table(linked, random_households(linked, rows))
    else:
        table = coded_table(coded_schema(sizes), random_rows(sizes, rows))
    check_valid(carry_out(spec, table, protection=protection), spec, table.schema)


@pytest.mark.parametrize("rho", [1e-8, 1e-3])
def test_tiny_budgets_still_give_valid_output(mechanism: dict[str, Any], rho: float) -> None:
    spec, table = ask(mechanism, budget={"rho": rho}), private_table(mechanism)
    check_valid(carry_out(spec, table), spec, table.schema)


def test_rows_follow_rules_however_the_model_was_fitted(finished: Finished) -> None:
    """Rules that the fit did not know: drawing alone keeps rows within them."""
    if finished.spec.synthetic_rows is None:
        return
    declared = finished.table.schema
    rules = [
        {"when": {"a": {"max": 0}}, "then": {"c": {"min": 1}}},
        {"never": {"b": {"min": 2}, "c": {"min": 3}}},
        {"compare": ["a", "<=", "b"]},
    ]
    ruled = type(declared).model_validate(declared.model_dump() | {"rules": rules}, strict=False)
    model = replace(finished.release.model, schema=ruled)
    drawn = model.sample(400, seed=1)
    assert number_of(drawn, ruled) == 400
    assert not RowRules(ruled).broken(drawn).any()


def test_huge_budget_approaches_the_truth(mechanism: dict[str, Any]) -> None:
    """Measured max errors: of fem 0.023 with a standard deviation of 0.006 over runs, so that its tolerance
    is ten of them away: below 2e-5 by chance even if the tail is only exponential. All others are at
    least 16 standard deviations away."""
    changes: dict[str, Any] = {"budget": {"rho": 1000.0}}
    if mechanism["name"] != "gaussian":
        changes["outputs"] = {"rows": 5000}
    if mechanism["name"] in GAMES:  # so that a critic is not always the worst one
        changes["budget"] = {"rho": 10.0}
    spec = ask(settings_near_the_truth(mechanism), **changes)
    if is_linked(mechanism):
        table = linked_table(LINKED, random_households(LINKED, 2000))
    else:
        table = coded_table(SCHEMA, random_rows(SIZES, 2000))
    done = carry_out(spec, table, protection=REPLACE_ONE)
    queries = compile_workload(spec.workload, table.schema)
    true = fractions(queries, table)
    assert done.answers is not None
    # An average over all rounds remembers the start, and a relaxation that is made a distribution or
    # rows afterwards moves: neither is expected to be close.
    is_rough = mechanism.get("output") == "average" or mechanism["name"] in {
        "rap",
        "rap_plus_plus",
        *GAMES,
    }
    tolerance = 0.08 if is_rough or mechanism.get("average") else 0.01
    assert np.abs(done.answers.fractions - true).max() < tolerance
    if done.rows is not None:
        drawn = fractions(queries, Table(table.schema, [done.rows]))
        assert np.abs(drawn - true).max() < tolerance + 0.01


def fractions(queries: QuerySet, table: Table) -> np.ndarray:
    """True answers as fractions: of the rows or, where rows are linked, of groups or individuals."""
    rows = sum(number_of(chunk, table.schema) for chunk in table.chunks())
    wholes = [
        rows if block.whole is None else QuerySet([block.whole]).count(table)[0]
        for block in queries.blocks
    ]
    fractions: np.ndarray = queries.count(table) / np.repeat(wholes, np.diff(queries.offsets))
    return fractions


@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda p: f"{p.unit}-{p.relation}")
def test_spends_at_most_its_budget_and_nearly_all_of_it(
    mechanism: dict[str, Any], protection: Protection
) -> None:
    spec = ask(mechanism)
    journal = MemoryJournal()
    done = carry_out(spec, private_table(mechanism), journal, protection)
    budget = spec.budget.units(DELTA)
    spent = sum(operation.price for operation in journal.operations())
    assert spent <= budget
    # Counts that no unit can change are public, and their share is unspent: people who only change
    # their own columns change neither sizes nor the columns of groups.
    has_public = is_linked(mechanism) and (protection.unit, protection.relation) == (
        "person",
        "replace_one",
    )
    assert spent >= 0.999 * budget or has_public
    assert done.certificate["rho_units"] == spent


@pytest.mark.parametrize("name", [n for n, m in CONTRACT.items() if m["name"] != "gaussian"])
def test_certifying_is_paid_from_the_same_budget(name: str) -> None:
    # The bound is 0 if the noise is below -5.26 standard deviations: 7e-8 for each mechanism. At the
    # default confidence of 95% it would be below -2.45, and 1e-3 for all mechanisms together.
    certify = {"share": 0.1, "confidence": 0.999999}
    spec = ask(CONTRACT[name], outputs={"rows": 50, "certify": certify})
    journal = MemoryJournal()
    done = carry_out(spec, private_table(CONTRACT[name]), journal)
    prices = [each.price for each in journal.operations() if each.kind == "certify"]
    assert len(prices) == len(spec.workload) + 2
    largest, *items, columns = (price / spec.budget.units(DELTA) for price in prices)
    assert [largest, sum(items), columns] == pytest.approx([0.05, 0.025, 0.025], rel=1e-6)
    assert sum(o.price for o in journal.operations()) <= spec.budget.units(DELTA)
    assert done.certificate["certified_max_error"]["alpha"] > 0


RELEASING_ROWS = {
    mechanism.catalogue_name(): next(
        m for m in CONTRACT.values() if m["name"] == mechanism.catalogue_name()
    )
    for mechanism in CATALOGUE
    if mechanism.releases_rows
}


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", RELEASING_ROWS)
def test_the_certified_error_covers_the_true_one(name: str) -> None:
    """On fictional rows: at a confidence of 95%, in at least 95% of 200 releases.

    The bound on the noise's tail is generous: 99.3% are expected, and fewer than 190 have a
    probability below 1e-6. Of groups and individuals, everything is per group.
    """
    spec = ask(
        RELEASING_ROWS[name],
        budget={"rho": 0.05},
        outputs={"rows": 100, "certify": {"share": 0.2, "confidence": 0.95}},
    )
    table = private_table(RELEASING_ROWS[name])
    queries = compile_workload(spec.workload, table.schema)
    true = queries.count(table) / sum(number_of(each, table.schema) for each in table.chunks())
    covered = 0
    for seed in range(200):
        done = carry_out(spec, table, protection=REPLACE_ONE, seed=seed)
        assert done.rows is not None
        error = np.abs(queries.count(Table(table.schema, [done.rows])) / 100 - true).max()
        covered += error <= done.certificate["certified_max_error"]["alpha"]
    assert covered >= 190


def test_further_sets_of_rows_need_no_private_rows(
    mechanism: dict[str, Any], finished: Finished
) -> None:
    """From the journal alone, which stays as it is; the first set is that of a release without others."""
    if finished.release.rows is None or not finished.release.measurements:
        pytest.skip("there is no noise of measured counts, or there are no rows")
    spec = ask(mechanism, outputs={"rows": 50, "draws": 2})
    journal, nothing = finished.journal(), Table(finished.table.schema, [])
    reports: list[JobProgress] = []
    done = carry_out(spec, nothing, journal, progress=reports.append)
    assert done.rows is not None and done.redraws is not None
    assert same_rows(done.rows, finished.release.rows)
    sets = list(done.redraws)
    assert len(sets) == len(done.redraws) == 2
    for rows in sets:
        check_valid(replace(done, rows=rows), spec, nothing.schema)
    again = list(done.redraws)
    assert all(same_rows(*each) for each in zip(sets, again, strict=True))
    assert not same_rows(sets[0], done.rows) and not same_rows(*sets)
    assert journal.operations() == finished.operations
    assert {report.spent for report in reports[-2:]} == {done.certificate["rho_units"]}
    assert reports[-1].done == reports[-1].total


def same_rows(first: Chunk, second: Chunk) -> bool:
    return all(np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("name", ["dual_query", "fem", "query_gan"])
def test_games_refuse_further_sets_of_rows(name: str) -> None:
    spec = ask(CONTRACT[name], outputs={"rows": 50, "draws": 2})
    with pytest.raises(SpecError, match=r"measures no counts.*leave outputs\.draws out"):
        carry_out(spec, Forbidden(SCHEMA, []))


class Forbidden(Table):
    """A table that must not be read."""

    def chunks(self) -> Any:
        raise AssertionError("the rows were touched")

    def codes(self, names: Any) -> Any:
        raise AssertionError("the rows were touched")


class Watched(Table):
    """A table that only the vault may read."""

    def chunks(self) -> Any:
        self._refuse_strangers()
        return super().chunks()

    def codes(self, names: Any) -> Any:
        self._refuse_strangers()
        return super().codes(names)

    def _refuse_strangers(self) -> None:
        # `inspect.stack` would also look up the source of every frame, which takes longer than the job.
        frame = inspect.currentframe()
        while frame is not None and not isinstance(frame.f_locals.get("self"), Vault):
            frame = frame.f_back
        assert frame is not None, "the rows were read outside the door"


def test_never_touches_rows_outside_the_door(mechanism: dict[str, Any]) -> None:
    plain, spec = private_table(mechanism), ask(mechanism)
    watched = Watched(plain.schema, list(plain.chunks()))
    check_valid(carry_out(spec, watched), spec, plain.schema)


def ask_about_some(mechanism: dict[str, Any], *columns: str) -> ReleaseSpec:
    """A release about two of the three columns, and about those of `columns`."""
    kind, asked = (
        ("hierarchical", ["a", "c"]) if is_linked(mechanism) else ("marginals", ["b", "c"])
    )
    outputs: dict[str, Any] = {} if mechanism["name"] == "gaussian" else {"rows": 50}
    if columns:
        outputs["columns"] = list(columns)
    workload = [{"type": kind, "attributes": [asked]}]
    return release(mechanism, workload=workload, outputs=outputs)


def left_out_of(mechanism: dict[str, Any]) -> str:
    """The column that `ask_about_some` leaves out."""
    return "b" if is_linked(mechanism) else "a"


def test_releases_only_the_columns_that_are_asked_about(mechanism: dict[str, Any]) -> None:
    spec, table, journal = ask_about_some(mechanism), private_table(mechanism), MemoryJournal()
    done = carry_out(spec, table, journal)
    left_out = left_out_of(mechanism)
    schema = table.schema.project(set(table.schema.names) - {left_out})
    check_valid(done, spec, schema)
    assert done.model.schema == schema
    assert done.answers is not None
    # A mechanism that also chooses among single columns may measure no query about both.
    measured = [each.asked for each in journal.operations() if each.kind == "measure"]
    are_related = not measured or any("," in asked for asked in measured)
    possible = {"measured", "model"} if are_related else {"independent"}
    assert set(done.answers.bases) <= possible
    with pytest.raises(SpecError, match=f"no column '{left_out}'"):
        done.model.answer(ask_about(mechanism, left_out).workload)
    # The same outcomes give the same release for any values of the column that is left out.
    other = {left_out: lambda codes: np.zeros_like(codes)}
    changed = [
        {name: other.get(name, lambda same: same)(values) for name, values in chunk.items()}
        for chunk in table.chunks()
    ]
    again = carry_out(spec, Table(table.schema, changed), MemoryJournal(journal.operations()))
    assert outputs(again) == outputs(done)


def ask_about(mechanism: dict[str, Any], *columns: str) -> ReleaseSpec:
    kind = "hierarchical" if is_linked(mechanism) else "marginals"
    return release(mechanism, workload=[{"type": kind, "attributes": [list(columns)]}])


def test_measures_the_columns_that_are_named(mechanism: dict[str, Any]) -> None:
    named = left_out_of(mechanism)
    spec, table, journal = (
        ask_about_some(mechanism, named),
        private_table(mechanism),
        MemoryJournal(),
    )
    done = carry_out(spec, table, journal)
    assert done.model.schema == table.schema
    assert done.answers is not None
    bases = dict(zip(done.answers.items, done.answers.bases, strict=True))
    item = f"groups by {named}" if is_linked(mechanism) else named
    is_game = mechanism["name"] in GAMES and mechanism.get("critic") != "measured"
    assert bases[item] == ("model" if is_game else "measured")
    assert sum(each.price for each in journal.operations()) <= spec.budget.units(DELTA)
    if spec.mechanism.releases_rows and not (is_game or spec.mechanism.needs_public_data):
        pair = done.model.answer(ask_about(mechanism, "a", "b").workload)
        assert set(pair.bases) == {"independent"}


def same_operation(a: Operation, b: Operation) -> bool:
    return (a.kind, a.asked, a.scale, a.price) == (b.kind, b.asked, b.scale, b.price) and (
        a.values.tolist() == b.values.tolist()
    )


def test_resumes_from_every_prefix_of_its_journal(finished: Finished) -> None:
    spec, table, complete = finished.spec, finished.table, finished.operations
    is_annealed = getattr(spec.mechanism, "schedule", None) == "annealed"
    for length in range(len(complete) + 1):
        resumed = MemoryJournal(complete[:length])
        last = length == len(complete)
        given = Forbidden(table.schema, []) if last else table
        check_valid(carry_out(spec, given, resumed), spec, table.schema)
        again = resumed.operations()
        # With other noise after the prefix, annealed rounds may be more or fewer.
        assert len(again) == len(complete) or (is_annealed and not last)
        assert all(same_operation(a, b) for a, b in zip(again[:length], complete, strict=False))
        assert sum(o.price for o in again) <= spec.budget.units(DELTA)


def outputs(done: FinishedRelease) -> tuple[Any, ...]:
    rows = None if done.rows is None else {n: v.tobytes() for n, v in done.rows.items()}
    assert done.answers is not None
    return rows, done.answers.fractions.tobytes(), done.model.to_bytes(), str(done.certificate)


def test_same_journal_on_neighbouring_data_gives_identical_output(
    mechanism: dict[str, Any], finished: Finished
) -> None:
    """T7: everything after a committed outcome is a function of the journal alone."""
    neighbour = private_table(mechanism, with_one_more=True)
    reported: list[Any] = []
    second = carry_out(finished.spec, neighbour, finished.journal(), progress=reported.append)
    assert outputs(finished.release) == outputs(second)
    assert [(p.done, p.total) for p in finished.progress] == [(p.done, p.total) for p in reported]


def test_post_processing_is_decided_by_the_seed(finished: Finished) -> None:
    same, other = (
        carry_out(finished.spec, finished.table, finished.journal(), seed=seed) for seed in (0, 1)
    )
    assert outputs(finished.release) == outputs(same)
    if finished.release.rows is not None:
        assert outputs(finished.release)[0] != outputs(other)[0]


def test_fresh_noise_in_every_run(mechanism: dict[str, Any]) -> None:
    """At this budget two numbers of rows agree with probability 4e-4, two draws of six critics among 52
    with 1e-10, and two measurements of six cells with less: below 1e-12 in all."""
    first, second = MemoryJournal(), MemoryJournal()
    for journal in (first, second):
        carry_out(ask(mechanism, budget={"rho": 1e-4}), private_table(mechanism), journal)
    assert [o.values.tolist() for o in first.operations()] != [
        o.values.tolist() for o in second.operations()
    ]


def test_a_journal_of_another_release_is_refused(
    mechanism: dict[str, Any], finished: Finished
) -> None:
    with pytest.raises(JournalMismatch):
        carry_out(ask(mechanism, k=1), finished.table, finished.journal())


def test_a_certified_error_is_not_passed_on_to_other_rows() -> None:
    """A resumed job that fits a slightly different model may draw rows that were not certified."""
    spec = release(CONTRACT["mwem"], outputs={"rows": 50, "certify": {"share": 0.1}})
    table, journal = coded_table(SCHEMA, ROWS), MemoryJournal()
    first = carry_out(spec, table, journal, seed=5)
    same = carry_out(spec, table, MemoryJournal(journal.operations()), seed=5)
    assert outputs(first) == outputs(same)
    with pytest.raises(JournalMismatch):
        carry_out(spec, table, MemoryJournal(journal.operations()), seed=6)


def test_a_journal_over_the_budget_is_refused(
    mechanism: dict[str, Any], finished: Finished
) -> None:
    with pytest.raises(BudgetExceeded):
        carry_out(ask(mechanism, budget={"rho": 0.1}), finished.table, finished.journal())


def test_an_uncommitted_outcome_is_never_used(mechanism: dict[str, Any]) -> None:
    class Failing(MemoryJournal):
        def commit(self, operation: Operation) -> None:
            raise ConnectionError("the ledger is gone")

    with pytest.raises(ConnectionError):
        carry_out(ask(mechanism), private_table(mechanism), Failing())


def test_the_released_model_survives_saving(finished: Finished, tmp_path: Any) -> None:
    spec, table, done = finished.spec, finished.table, finished.release
    done.model.save(tmp_path / "model")
    loaded = type(done.model).load(tmp_path / "model")
    assert done.answers is not None
    again = loaded.answer(spec.workload)
    np.testing.assert_allclose(again.fractions, done.answers.fractions, atol=1e-6)
    assert again.queries == done.answers.queries
    assert again.standard_errors is not None and done.answers.standard_errors is not None
    # A weight that is stored in single precision moves an error by less than this.
    np.testing.assert_allclose(again.standard_errors, done.answers.standard_errors, rtol=1e-3)
    if spec.synthetic_rows is not None:
        assert number_of(loaded.sample(17, seed=3), table.schema) == 17


def test_progress_ends_complete_and_within_budget(finished: Finished) -> None:
    seen = finished.progress
    assert seen[-1].done == seen[-1].total
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert seen[-1].spent <= finished.spec.budget.units(DELTA)


def test_its_report_can_be_written(mechanism: dict[str, Any], finished: Finished) -> None:
    """The report asks the model about all that was measured, which the workload need not contain."""
    protection = protection_for(mechanism, ADD_REMOVE)
    page = render(finished.release, about(finished.spec, protection)).decode()
    assert page.rstrip().endswith("</html>")
    assert ("What the rows can be used for" in page) == (finished.release.rows is not None)
