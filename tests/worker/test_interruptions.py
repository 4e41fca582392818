"""Every way in which a release can be interrupted, and how it continues or ends."""

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from scrim.spec.errors import SpecError
from service.data.context import Context
from synth.journal import Operation
from synth.models.released import ReleasedModel
from synth.table import Chunk
from tests.worker.support import Stack
from worker import lease, releases, reporting
from worker.artifacts import write_artifacts
from worker.errors import Abandoned
from worker.jobs import load_job
from worker.journal import LedgerJournal
from worker.releases import run_release

pytestmark = pytest.mark.random

CERTIFIED = {"rows": 60, "formats": ["csv", "parquet"], "certify": {}}


def at(label: str, action: Callable[[], None], patch: pytest.MonkeyPatch) -> None:
    """Run an action when a job first reaches a label."""
    waiting = [action]

    def hook(found: str) -> None:
        if found == label and waiting:
            waiting.pop()()

    patch.setattr(releases, "crash_at", hook)


def stop() -> None:
    raise Abandoned


def files(stack: Stack, release: UUID) -> dict[str, str]:
    """The artifacts' hashes by name, without the certificate, which contains the date."""
    found = {each["name"]: each["sha256"] for each in stack.release(release)["artifacts"]}
    del found["certificate.json"]
    return found


@pytest.mark.parametrize("label", ["before-artifacts", "after-artifacts-before-finish"])
def test_resumed_from_the_journal_alone(
    stack: Stack, dataset: UUID, label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = stack.submit(dataset, outputs=CERTIFIED)
    at(label, stop, monkeypatch)
    run_release(stack.context, release)
    journal = stack.journal(release)
    assert stack.release(release)["state"] == "running" and len(journal) == 10
    for path in stack.objects(f"datasets/{dataset}/tables/1/rows"):
        path.write_bytes(b"a resumed job reads no row")
    run_release(stack.context, release)
    assert stack.release(release)["state"] == "succeeded"
    assert stack.journal(release) == journal
    stream = stack.http.get(f"/v1/releases/{release}/events").text
    assert stream.count('"attempt": 2') == 1


def test_resumed_jobs_release_the_same_files(
    stack: Stack, dataset: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = stack.submit(dataset, outputs=CERTIFIED)
    written: list[dict[str, Any]] = []
    write = write_artifacts

    def remember(*arguments: Any, **named: Any) -> Any:
        written.append(write(*arguments, **named))
        return dict(written[-1])

    monkeypatch.setattr(releases, "write_artifacts", remember)
    at("after-artifacts-before-finish", stop, monkeypatch)
    run_release(stack.context, release)
    stack.expire_lease(release)
    run_release(stack.context, release)
    assert written[0] == written[1]
    hashes = {name: each.stored.sha256 for name, each in written[0].items()}
    found = files(stack, release)
    assert found.pop("report.html") and found == hashes


def test_certified_rows_are_released_or_none(
    stack: Stack, population: UUID, dataset: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On another machine refitting may differ by a rounding, and so may the rows drawn anew."""
    release = stack.submit(dataset, outputs=CERTIFIED)
    at("before-artifacts", stop, monkeypatch)
    run_release(stack.context, release)
    journal = stack.journal(release)
    assert journal[-1].kind == "certify"
    stack.expire_lease(release)
    draw = ReleasedModel.sample

    def draw_one_other_row(model: ReleasedModel, rows: int, seed: int) -> Chunk:
        drawn = draw(model, rows, seed)
        sexes = drawn["sex"].copy()
        sexes[0] = sexes[0] == 0  # it may also be "other"
        return {**drawn, "sex": sexes}

    monkeypatch.setattr(ReleasedModel, "sample", draw_one_other_row)
    run_release(stack.context, release)
    shown = stack.release(release)
    assert (shown["state"], shown["artifacts"]) == ("failed", [])
    assert shown["error"]["type"] == "/problems/cannot-resume"
    assert stack.journal(release) == journal
    account = stack.account(population)
    spent = sum(each.price_units for each in journal)
    assert (account.spent_units, account.reserved_units) == (spent, 0)


def test_interrupted_between_operations(
    stack: Stack, population: UUID, dataset: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = stack.submit(dataset)
    commit = LedgerJournal.commit
    left = 3

    def commit_some(journal: LedgerJournal, operation: Operation) -> None:
        nonlocal left
        if left == 0:
            raise Abandoned
        left -= 1
        commit(journal, operation)

    monkeypatch.setattr(LedgerJournal, "commit", commit_some)
    run_release(stack.context, release)
    monkeypatch.undo()
    first = stack.journal(release)
    assert len(first) == 3
    stack.expire_lease(release)
    run_release(stack.context, release)
    journal = stack.journal(release)
    assert journal[:3] == first and len(journal) == 7
    assert stack.account(population).spent_units == sum(each.price_units for each in journal)


def test_a_zombie_changes_nothing(
    stack: Stack, dataset: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = stack.submit(dataset)

    def take_over() -> None:
        stack.expire_lease(release)
        run_release(stack.context, release)
        assert stack.release(release)["state"] == "succeeded"
        taken.append(stack.release(release))

    taken: list[dict[str, Any]] = []
    at("after-artifacts-before-finish", take_over, monkeypatch)
    run_release(stack.context, release)
    assert taken == [stack.release(release)]
    assert stack.reservation(release).lease_epoch == 2


def test_the_first_of_two_dry_runs_wins(
    stack: Stack, dataset: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that lost its connection, and with it the lock, comes too late."""
    release = stack.submit(dataset, dry_run=True)
    taken: list[dict[str, Any]] = []

    def take_over() -> None:
        monkeypatch.setattr(lease, "_lock_key", lambda _release: 1)
        run_release(stack.context, release)
        taken.append(stack.release(release))

    at("after-artifacts-before-finish", take_over, monkeypatch)
    run_release(stack.context, release)
    assert taken == [stack.release(release)] and taken[0]["state"] == "succeeded"


@pytest.mark.parametrize("label", ["before-artifacts", "after-artifacts-before-finish"])
def test_cancelled_late(
    stack: Stack, population: UUID, dataset: UUID, label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = stack.submit(dataset)
    at(label, lambda: stack.cancel(release), monkeypatch)
    run_release(stack.context, release)
    shown = stack.release(release)
    assert (shown["state"], shown["artifacts"]) == ("cancelled", [])
    account = stack.account(population)
    assert account.spent_units > 0 and account.reserved_units == 0


def test_cancelled_between_rounds(
    stack: Stack, population: UUID, dataset: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = stack.submit(dataset, mechanism={"name": "mwem", "rounds": 5000, "passes": 1})
    commit = LedgerJournal.commit

    def commit_and_cancel(journal: LedgerJournal, operation: Operation) -> None:
        commit(journal, operation)
        if operation.kind == "rows":
            stack.cancel(release)

    monkeypatch.setattr(LedgerJournal, "commit", commit_and_cancel)
    monkeypatch.setattr(reporting, "REPORT_SECONDS", 0.01)
    run_release(stack.context, release)
    assert stack.release(release)["state"] == "cancelled"
    assert len(stack.journal(release)) < 10_001
    assert stack.account(population).reserved_units == 0


def test_cancelled_before_it_started(stack: Stack, dataset: UUID) -> None:
    release = stack.submit(dataset)
    stack.scalar("UPDATE release SET cancel_requested = true WHERE id = :id", id=release)
    run_release(stack.context, release)
    assert stack.release(release)["state"] == "cancelled"
    assert stack.reservation(release).state == "closed"


def test_dataset_deleted_meanwhile(
    stack: Stack, dataset: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = stack.submit(dataset)

    def delete_first(context: Context, identifier: UUID) -> Any:
        assert stack.http.delete(f"/v1/datasets/{dataset}").status_code == 204
        return load_job(context, identifier)

    monkeypatch.setattr(releases, "load_job", delete_first)
    run_release(stack.context, release)
    assert stack.release(release)["state"] == "cancelled"
    assert stack.journal(release) == []


def test_impossible_releases_say_why(
    stack: Stack, population: UUID, dataset: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise SpecError("declare wider bins")

    monkeypatch.setattr(releases, "load_job", refuse)
    release = stack.submit(dataset)
    run_release(stack.context, release)
    shown = stack.release(release)
    assert shown["state"] == "failed"
    assert shown["error"] == {"type": "/problems/cannot-work", "detail": "declare wider bins"}
    assert stack.account(population).reserved_units == 0


def test_bugs_are_told_by_reference(
    stack: Stack, population: UUID, dataset: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("CANARY")

    monkeypatch.setattr(releases, "write_artifacts", fail)
    release = stack.submit(dataset)
    run_release(stack.context, release)
    shown = stack.release(release)
    assert shown["state"] == "failed" and shown["artifacts"] == []
    detail = shown["error"]["detail"]
    assert detail.split()[3] in stack.log.getvalue()
    assert "CANARY" not in json.dumps(shown) + stack.log.getvalue()
    account = stack.account(population)
    spent = sum(each.price_units for each in stack.journal(release))
    assert (account.spent_units, account.reserved_units) == (spent, 0) and spent > 0


def test_outages_leave_it_to_the_next(
    stack: Stack, dataset: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ConnectionError

    release = stack.submit(dataset)
    monkeypatch.setattr(releases, "write_artifacts", fail)
    run_release(stack.context, release)
    assert stack.release(release)["state"] == "running"
    monkeypatch.undo()
    stack.expire_lease(release)
    run_release(stack.context, release)
    assert stack.release(release)["state"] == "succeeded"
