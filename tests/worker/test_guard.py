"""The guard ends jobs from another process: it records their end and then kills their process."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from uuid import UUID

import pytest

from service.data.ledger import repository as ledger
from tests.worker.support import Stack
from worker.guard import TERM_SECONDS, JobGuard
from worker.lease import holder
from worker.releases import run_release

LIMIT = 100.0


class Clock:
    """A clock that tests advance."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def worker() -> Iterator["subprocess.Popen[bytes]"]:
    """An idle process."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def guard(stack: Stack, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> JobGuard:
    monkeypatch.setitem(vars(stack.context.settings), "job_seconds", LIMIT)
    return JobGuard(stack.context, now=clock)


def claim(stack: Stack, release: UUID, name: str) -> None:
    with stack.context.engine.begin() as connection:
        ledger.claim(connection, release, holder=name, lease_seconds=60)
    stack.scalar("UPDATE release SET state = 'running' WHERE id = :id", id=release)


def started(
    stack: Stack, dataset: UUID, guard: JobGuard, worker: "subprocess.Popen[bytes]"
) -> UUID:
    """A release that the process runs, as reported to the guard."""
    release = stack.submit(dataset)
    claim(stack, release, holder(worker.pid))
    guard.hear(f"start {worker.pid} {release}")
    return release


def test_cancelled_jobs_get_a_moment_and_are_then_killed(
    stack: Stack,
    population: UUID,
    dataset: UUID,
    guard: JobGuard,
    clock: Clock,
    worker: "subprocess.Popen[bytes]",
) -> None:
    release = started(stack, dataset, guard, worker)
    stack.cancel(release)
    guard.look()
    assert stack.release(release)["state"] == "running" and worker.poll() is None
    clock.now = TERM_SECONDS
    guard.look()
    assert stack.release(release)["state"] == "cancelled"
    assert worker.wait() == -signal.SIGKILL
    assert stack.account(population).reserved_units == 0


@pytest.mark.random
def test_a_job_that_takes_too_long_ends_and_can_be_resumed(
    stack: Stack,
    population: UUID,
    dataset: UUID,
    guard: JobGuard,
    clock: Clock,
    worker: "subprocess.Popen[bytes]",
) -> None:
    release = started(stack, dataset, guard, worker)
    clock.now = LIMIT
    guard.look()
    assert worker.poll() is None
    clock.now = LIMIT + 1
    guard.look()
    assert worker.wait() == -signal.SIGKILL
    shown = stack.release(release)
    assert shown["state"] == "failed" and shown["error"]["type"] == "/problems/time-limit"
    assert "100 seconds" in shown["error"]["detail"]
    assert stack.account(population).reserved_units == 0
    assert stack.http.post(f"/v1/releases/{release}/resume").status_code == 200
    run_release(stack.context, release)
    assert stack.release(release)["state"] == "succeeded"


def test_without_a_limit_jobs_take_as_long_as_they_like(
    stack: Stack,
    dataset: UUID,
    clock: Clock,
    worker: "subprocess.Popen[bytes]",
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(vars(stack.context.settings), "job_seconds", 0.0)
    guard = JobGuard(stack.context, now=clock)
    release = started(stack, dataset, guard, worker)
    clock.now = 1e9
    guard.look()
    assert worker.poll() is None and stack.release(release)["state"] == "running"


def test_what_another_worker_has_taken_over_is_left_alone(
    stack: Stack, dataset: UUID, guard: JobGuard, clock: Clock, worker: "subprocess.Popen[bytes]"
) -> None:
    release = started(stack, dataset, guard, worker)
    stack.expire_lease(release)
    claim(stack, release, "another")
    clock.now = LIMIT + 1
    guard.look()
    assert worker.poll() is None and stack.release(release)["state"] == "running"


def test_jobs_that_ended_are_not_ended_again(
    stack: Stack, dataset: UUID, guard: JobGuard, clock: Clock, worker: "subprocess.Popen[bytes]"
) -> None:
    release = started(stack, dataset, guard, worker)
    guard.hear(f"end {worker.pid}")
    clock.now = LIMIT + 1
    guard.look()
    assert worker.poll() is None and stack.release(release)["state"] == "running"
    # A killed process sends no line; the reaper handles its release.
    guard.hear(f"start {worker.pid} {release}")
    worker.kill()
    worker.wait()
    clock.now += LIMIT + 1
    guard.look()
    assert stack.release(release)["state"] == "running"
    guard.hear(f"start {worker.pid} {release}")
