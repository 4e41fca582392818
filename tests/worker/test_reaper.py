"""Jobs without a worker get a new message, or are ended."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from service.data import ingest
from service.data.ledger import repository as ledger
from service.data.task_queue import INGEST, JOBS, RUN
from tests.worker.support import Stack, await_that, emptied
from worker.ingest import ingest_dataset
from worker.lease import DryRunLease
from worker.reaper import Reaper

MAX_ATTEMPTS = 3
LEASE_IS_OVER = "SELECT lease_until <= clock_timestamp() FROM dataset WHERE id = :id"
PAUSE = "SELECT extract(epoch FROM resume_at - clock_timestamp()) FROM dataset WHERE id = :id"


@pytest.fixture
def stack(stack: Stack) -> Iterator[Stack]:
    """With an empty queue, and nothing that an earlier test left waiting."""
    emptied(stack)
    yield stack


@pytest.fixture
def sent(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The messages sent from now on."""
    heard: list[tuple[str, str]] = []
    task_queue = stack.context.task_queue
    send = task_queue.send

    def hear(task: str, identifier: str, **named: Any) -> None:
        heard.append((task, identifier))
        send(task, identifier, **named)

    monkeypatch.setattr(task_queue, "send", hear)
    return heard


def reaper(stack: Stack, *, resend_seconds: float = 3600) -> Reaper:
    return Reaper(stack.context, resend_seconds=resend_seconds, max_attempts=MAX_ATTEMPTS)


def age(stack: Stack, release: UUID) -> None:
    stack.scalar("UPDATE release SET rang_at = now() - interval '1 day' WHERE id = :id", id=release)


def claim(stack: Stack, release: UUID) -> None:
    with stack.context.engine.begin() as connection:
        ledger.claim(connection, release, holder="worker", lease_seconds=60)


def attempt(stack: Stack, release: UUID, times: int) -> None:
    """Record that several workers of a release were lost."""
    stack.scalar(
        "UPDATE release SET lost_attempts = lost_attempts + :times WHERE id = :id",
        id=release,
        times=times,
    )


def test_lost_messages_are_sent_again_once(
    stack: Stack, dataset: UUID, sent: list[tuple[str, str]]
) -> None:
    release = stack.submit(dataset)
    sent.clear()
    stack.context.broker.flushdb()
    reaper(stack).sweep()
    assert sent == [], "it was sent a moment ago"
    age(stack, release)
    reaper(stack).sweep()
    reaper(stack).sweep()
    assert sent == [(RUN, str(release))]
    # While the message waits in the queue, the workers are busy and nothing was lost.
    age(stack, release)
    assert stack.context.task_queue.depth(JOBS) == 1
    reaper(stack).sweep()
    assert len(sent) == 1


def test_a_live_lease_is_left_alone(
    stack: Stack, dataset: UUID, sent: list[tuple[str, str]]
) -> None:
    release = stack.submit(dataset)
    stack.context.broker.flushdb()
    claim(stack, release)
    age(stack, release)
    sent.clear()
    reaper(stack).sweep()
    assert sent == []
    stack.expire_lease(release)
    reaper(stack).sweep()
    assert sent == [(RUN, str(release))]


def test_dry_runs(stack: Stack, dataset: UUID, sent: list[tuple[str, str]]) -> None:
    release = stack.submit(dataset, dry_run=True)
    stack.context.broker.flushdb()
    age(stack, release)
    sent.clear()
    with DryRunLease.claimed(stack.context.engine, release) as lease:
        assert lease is not None
        reaper(stack).sweep()
        assert sent == []
    reaper(stack).sweep()
    assert sent == [(RUN, str(release))]
    attempt(stack, release, MAX_ATTEMPTS)
    reaper(stack).sweep()
    assert stack.release(release)["state"] == "failed"


def test_giving_up(stack: Stack, population: UUID, dataset: UUID) -> None:
    release = stack.submit(dataset)
    attempt(stack, release, MAX_ATTEMPTS - 1)
    reaper(stack).sweep()
    assert stack.release(release)["state"] == "queued"
    attempt(stack, release, 1)
    claim(stack, release)
    reaper(stack).sweep()
    assert stack.release(release)["state"] == "queued", "a worker is on it"
    stack.expire_lease(release)
    reaper(stack).sweep()
    shown = stack.release(release)
    assert shown["state"] == "failed" and shown["error"]["type"] == "/problems/gave-up"
    assert stack.account(population).reserved_units == 0


def test_cancelled_after_its_worker_died(stack: Stack, population: UUID, dataset: UUID) -> None:
    release = stack.submit(dataset)
    claim(stack, release)
    stack.cancel(release)
    reaper(stack).sweep()
    assert stack.release(release)["state"] == "queued"
    stack.expire_lease(release)
    reaper(stack).sweep()
    assert stack.release(release)["state"] == "cancelled"
    assert stack.account(population).reserved_units == 0


def test_reservations_of_ended_releases_are_closed(
    stack: Stack, population: UUID, dataset: UUID
) -> None:
    release = stack.submit(dataset)
    stack.scalar(
        "UPDATE release SET state = 'failed', finished_at = now() WHERE id = :id", id=release
    )
    assert stack.account(population).reserved_units > 0
    reaper(stack).sweep()
    assert stack.account(population).reserved_units == 0
    assert stack.reservation(release).state == "closed"


def test_datasets(stack: Stack, population: UUID, sent: list[tuple[str, str]]) -> None:
    dataset = stack.uploaded(population)
    stack.context.broker.flushdb()
    sent.clear()
    patient = reaper(stack)
    patient.sweep()
    stack.context.broker.flushdb()
    patient.sweep()
    assert sent == [(INGEST, str(dataset))]


def test_datasets_whose_workers_are_killed_are_tried_again(
    stack: Stack, population: UUID, sent: list[tuple[str, str]]
) -> None:
    dataset = stack.uploaded(population)
    pauses = []
    for _ in range(2 * MAX_ATTEMPTS):
        with stack.context.transaction() as work:
            assert ingest.claim(work.session, dataset, lease_seconds=1e-3) is not None
        await_that(lambda: stack.scalar(LEASE_IS_OVER, id=dataset), "end of a lease")
        stack.context.broker.flushdb()
        sent.clear()
        reaper(stack).sweep()
        assert sent == [], "its next attempt is later"
        pauses.append(stack.scalar(PAUSE, id=dataset))
    assert pauses == sorted(pauses) and pauses[-1] > 100
    assert stack.show("datasets", dataset)["state"] == "ingesting"
    stack.scalar("UPDATE dataset SET resume_at = now() WHERE id = :id", id=dataset)
    reaper(stack).sweep()
    assert sent == [(INGEST, str(dataset))]
    ingest_dataset(stack.context, dataset)
    assert stack.show("datasets", dataset)["state"] == "ready"


def test_what_fails_does_not_stop_it(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = stack.uploaded()
    stack.scalar("UPDATE dataset SET state = 'ready' WHERE id = :id", id=dataset)

    def fail(_queue: str) -> int:
        raise ConnectionError("secret text")

    monkeypatch.setattr(stack.context.task_queue, "depth", fail)
    reaper(stack).sweep()
    assert not stack.objects(f"datasets/{dataset}/uploads")
    assert "reaper_failed" in stack.log.getvalue()
    assert "secret text" not in stack.log.getvalue()
