"""Releases that fail because of a worker or a machine: no budget is lost."""

import errno
import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import numpy as np
import pytest
import torch

from service.data.ledger import repository as ledger
from synth.run import run
from tests.worker.support import Stack
from worker import departure, releases
from worker.departure import MAX_MEMORY_FAILURES
from worker.memory import HEADROOM_BYTES, is_out_of_memory, limited_memory
from worker.reaper import Reaper
from worker.releases import run_release

# Whatever the noise is, the outcome is the same.
pytestmark = pytest.mark.random

CERTIFIED = {"rows": 60, "certify": {}}


def spent_by(stack: Stack, release: UUID) -> int:
    return sum(each.price_units for each in stack.journal(release))


def row(stack: Stack, release: UUID, column: str) -> Any:
    return stack.scalar(f"SELECT {column} FROM release WHERE id = :id", id=release)


def failing(error: Exception) -> Callable[..., Any]:
    """Raise the error whatever is asked."""

    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """No artifact can be written; undone by the patch."""
    with monkeypatch.context() as patch:
        full = OSError(errno.ENOSPC, "No space left on device")
        patch.setattr(releases, "write_artifacts", failing(full))
        yield patch


def test_outages_are_no_attempts(
    stack: Stack, population: UUID, dataset: UUID, full_disk: pytest.MonkeyPatch
) -> None:
    """A disk that is full for longer than there are attempts costs nothing."""
    release = stack.submit(dataset, outputs=CERTIFIED)
    pauses = []
    for number in range(5):
        run_release(stack.context, release)
        shown = stack.release(release)
        assert shown["state"] == "running", shown
        assert row(stack, release, "lost_attempts") == 0
        assert row(stack, release, "outages") == number + 1
        pauses.append(row(stack, release, "extract(epoch FROM resume_at - now())"))
        reaper = Reaper(stack.context, resend_seconds=0.001, max_attempts=1)
        reaper.sweep()
    assert pauses == sorted(pauses), "each pause is longer than the one before"
    journal = stack.journal(release)
    full_disk.undo()
    run_release(stack.context, release)
    assert stack.release(release)["state"] == "succeeded"
    assert stack.journal(release) == journal
    account = stack.account(population)
    assert (account.spent_units, account.reserved_units) == (spent_by(stack, release), 0)


def test_a_release_that_waits_for_the_end_of_an_outage_is_not_rung_for(
    stack: Stack, dataset: UUID, full_disk: pytest.MonkeyPatch
) -> None:
    release = stack.submit(dataset)
    run_release(stack.context, release)
    stack.scalar("UPDATE release SET rang_at = now() - interval '1 day' WHERE id = :id", id=release)
    stack.context.broker.flushdb()
    before = row(stack, release, "rang_at")
    Reaper(stack.context, resend_seconds=1, max_attempts=9).sweep()
    assert row(stack, release, "rang_at") == before
    stack.scalar("UPDATE release SET resume_at = now() WHERE id = :id", id=release)
    Reaper(stack.context, resend_seconds=1, max_attempts=9).sweep()
    assert row(stack, release, "rang_at") > before
    stack.cancel(release)
    assert stack.release(release)["state"] == "cancelled", "no worker holds it meanwhile"


def test_leaving_waits_for_the_database(
    stack: Stack, dataset: UUID, full_disk: pytest.MonkeyPatch
) -> None:
    release = stack.submit(dataset)
    really, refusals = departure._leave, [ConnectionError(), ConnectionError()]

    def leave_later(*arguments: Any) -> None:
        if refusals:
            raise refusals.pop()
        really(*arguments)

    waited: list[float] = []
    full_disk.setattr(departure, "_leave", leave_later)
    full_disk.setattr(time, "sleep", waited.append)
    run_release(stack.context, release)
    assert waited == [0, 1, 2]
    assert row(stack, release, "lost_attempts") == 0


def test_crashes_are_attempts(stack: Stack, dataset: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        """An exception that no code handles, like a kill signal."""

    def die(_label: str) -> None:
        raise Killed

    release = stack.submit(dataset)
    for number in range(2):
        monkeypatch.setattr(releases, "crash_at", die)
        with pytest.raises(Killed):
            run_release(stack.context, release)
        stack.expire_lease(release)
        assert row(stack, release, "lost_attempts") == number + 1
    Reaper(stack.context, resend_seconds=3600, max_attempts=2).sweep()
    assert stack.release(release)["error"]["type"] == "/problems/gave-up"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
    ],
)
def test_running_out_of_memory_ends_a_release_that_can_be_resumed(
    stack: Stack,
    population: UUID,
    dataset: UUID,
    error: Exception,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release = stack.submit(dataset, outputs=CERTIFIED)
    with monkeypatch.context() as patch:
        patch.setattr(releases, "write_artifacts", failing(error))
        for number in range(MAX_MEMORY_FAILURES):
            assert stack.release(release)["state"] == ("running" if number else "queued")
            run_release(stack.context, release)
    shown = stack.release(release)
    assert shown["state"] == "failed" and shown["error"]["type"] == "/problems/not-enough-memory"
    assert "scrim release resume" in shown["error"]["detail"]
    journal, spent = stack.journal(release), spent_by(stack, release)
    assert spent > 0 and stack.account(population).reserved_units == 0
    resumed = stack.http.post(f"/v1/releases/{release}/resume")
    assert resumed.status_code == 200, resumed.text
    assert (resumed.json()["state"], resumed.json()["error"]) == ("queued", None)
    run_release(stack.context, release)
    assert stack.release(release)["state"] == "succeeded"
    assert stack.journal(release) == journal
    account = stack.account(population)
    assert (account.spent_units, account.reserved_units) == (spent, 0)


def test_a_device_that_is_too_small_is_replaced_by_the_processor(
    stack: Stack, dataset: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It continues from the journal: earlier measurements are not repeated."""
    release = stack.submit(dataset)
    devices: list[str] = []

    def run_out(*arguments: Any, device: str, **named: Any) -> Any:
        devices.append(device)
        done = run(*arguments, device="cpu", **named)
        if device != "cpu":
            raise torch.OutOfMemoryError("CUDA out of memory")
        return done

    monkeypatch.setattr(releases, "run", run_out)
    run_release(stack.context, release)
    assert devices == [stack.context.settings.device, "cpu"]
    assert stack.release(release)["state"] == "succeeded"
    assert len(stack.journal(release)) == 7


def test_a_job_may_use_no_more_memory_than_it_is_given() -> None:
    limit = 2**26
    for allocate in (lambda size: np.ones(size, np.int8), lambda size: torch.ones(size // 4)):
        with limited_memory(limit):
            allocate(limit // 2)
            with pytest.raises((MemoryError, RuntimeError)) as found:
                allocate(2 * (limit + HEADROOM_BYTES))
        assert is_out_of_memory(found.value)
        allocate(2 * (limit + HEADROOM_BYTES))
    assert not is_out_of_memory(RuntimeError("another"))


def test_a_job_that_needs_more_is_stopped_alone(
    stack: Stack, dataset: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = stack.submit(dataset, outputs={"rows": 8_000_000})
    monkeypatch.setitem(vars(stack.context.settings), "worker_memory_bytes", 1)
    run_release(stack.context, release)
    assert stack.release(release)["state"] == "running"
    assert row(stack, release, "memory_failures") == 1
    assert row(stack, release, "lost_attempts") == 0
    stack.cancel(release)
    assert stack.release(release)["state"] == "cancelled"


class TestResuming:
    """What an admin may resume, and what it costs."""

    @pytest.fixture
    def failed(self, stack: Stack, dataset: UUID, monkeypatch: pytest.MonkeyPatch) -> UUID:
        """A release that has spent all but a bound on its error."""
        release = stack.submit(dataset, budget={"rho": 6.0})
        with monkeypatch.context() as patch:
            patch.setattr(releases, "write_artifacts", failing(RuntimeError()))
            run_release(stack.context, release)
        assert stack.release(release)["error"]["type"] == "/problems/internal"
        return release

    def resume(self, stack: Stack, release: UUID) -> tuple[int, str]:
        answer = stack.http.post(f"/v1/releases/{release}/resume")
        return answer.status_code, answer.json().get("type", "")

    def test_it_goes_on_at_no_cost(self, stack: Stack, population: UUID, failed: UUID) -> None:
        journal, amount = stack.journal(failed), stack.reservation(failed).amount_units
        assert self.resume(stack, failed) == (200, "")
        account = stack.account(population)
        assert account.spent_units + account.reserved_units == amount
        assert self.resume(stack, failed) == (409, "/problems/conflict")
        run_release(stack.context, failed)
        shown = stack.release(failed)
        assert (shown["state"], shown["error"]) == ("succeeded", None)
        assert stack.journal(failed) == journal
        assert self.resume(stack, failed) == (409, "/problems/conflict")

    def test_the_rest_must_be_left(self, stack: Stack, population: UUID, failed: UUID) -> None:
        account, rest = stack.account(population), stack.reservation(failed)
        assert rest.amount_units > rest.spent_units
        cap = account.spent_units + rest.amount_units - rest.spent_units
        for cap_units, status in ((cap - 1, 409), (cap, 200)):
            with stack.context.engine.begin() as connection:
                ledger.set_cap(connection, population, cap_units=cap_units)
            found = self.resume(stack, failed)
            assert found[0] == status
        assert stack.release(failed)["state"] == "queued"

    def test_rows_must_be_there(self, stack: Stack, dataset: UUID, failed: UUID) -> None:
        assert stack.http.delete(f"/v1/datasets/{dataset}").status_code == 204
        assert self.resume(stack, failed) == (409, "/problems/dataset-not-ready")
        assert stack.reservation(failed).state == "closed"

    @pytest.mark.parametrize("kind", ["cannot-work", "public-data-too-far"])
    def test_what_would_fail_again_is_refused(self, stack: Stack, failed: UUID, kind: str) -> None:
        stack.scalar(
            "UPDATE release SET error = jsonb_build_object('type', CAST(:kind AS text))"
            " WHERE id = :id",
            id=failed,
            kind=f"/problems/{kind}",
        )
        assert self.resume(stack, failed) == (409, "/problems/conflict")

    def test_a_dry_run_has_no_reservation(self, stack: Stack, dataset: UUID) -> None:
        release = stack.submit(dataset, dry_run=True)
        stack.scalar(
            "UPDATE release SET state = 'failed', finished_at = now(),"
            ' error = \'{"type": "/problems/gave-up"}\' WHERE id = :id',
            id=release,
        )
        assert self.resume(stack, release) == (200, "")
        run_release(stack.context, release)
        assert stack.release(release)["state"] == "succeeded"
