"""Curators and populations take turns, whatever was queued first; no waiting release starves."""

import os
from collections.abc import Iterator
from uuid import UUID

import pytest
from celery._state import _get_active_apps as active_apps

from service.data import progress
from service.data.task_queue import JOBS, RUN
from tests.worker.support import Stack, emptied
from worker.app import open_app
from worker.guarded import Guarded
from worker.ingest import ingest_dataset
from worker.lease import DryRunLease, ReleaseLease
from worker.reaper import Reaper
from worker.turns import next_release, take_turn


@pytest.fixture
def stack(stack: Stack) -> Iterator[Stack]:
    """With an empty queue, before and after."""
    emptied(stack)
    yield stack
    emptied(stack)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Ends of a pipe, to read from and to write to."""
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


@pytest.fixture
def guard(pipe: tuple[int, int]) -> Guarded:
    """The worker's side of a guard; the test is the other side."""
    return Guarded(pipe[1])


@pytest.fixture
def ann(stack: Stack) -> str:
    return stack.curator()


@pytest.fixture
def bob(stack: Stack) -> str:
    return stack.curator()


@pytest.fixture
def other_dataset(stack: Stack) -> UUID:
    """A dataset of another population."""
    dataset = stack.uploaded(stack.population())
    ingest_dataset(stack.context, dataset)
    return dataset


def begin(stack: Stack, release: UUID, *, seconds: float = 60) -> ReleaseLease:
    """Start a release as a worker does."""
    with stack.context.transaction() as work:
        lease = ReleaseLease.claim(
            work.session, release, engine=stack.context.engine, seconds=seconds
        )
        assert progress.start(work.session, release) is not None
    return lease


def interrupt(stack: Stack, release: UUID) -> None:
    """Start a release, let its worker die, and the reaper notice."""
    begin(stack, release)
    stack.expire_lease(release)
    sweep(stack, release)


def sweep(stack: Stack, *lost: UUID) -> None:
    """Sweep as the reaper does, a day after it sent messages for these."""
    for release in lost:
        stack.scalar(
            "UPDATE release SET rang_at = now() - interval '1 day' WHERE id = :id", id=release
        )
    Reaper(stack.context, resend_seconds=3600, max_attempts=10).sweep()


def serve(stack: Stack) -> UUID | None:
    """Handle one message as a worker does, without running the job."""
    with stack.context.transaction() as work:
        release = next_release(work.session)
    if release is None:
        return None
    lease = begin(stack, release)
    with stack.context.transaction() as work:
        lease.end(work.session)
        progress.finish(work.session, release, "succeeded")
    return release


def give_a_turn(stack: Stack, dataset: UUID, key: str) -> None:
    release = stack.submit(dataset, key=key)
    assert serve(stack) == release


def serve_all(stack: Stack) -> list[UUID]:
    served: list[UUID] = []
    while (release := serve(stack)) is not None:
        served.append(release)
    return served


def upcoming(stack: Stack, *tried: UUID) -> UUID | None:
    with stack.context.transaction() as work:
        return next_release(work.session, tried=tried)


def test_curators_take_turns(stack: Stack, dataset: UUID, ann: str, bob: str) -> None:
    many = [stack.submit(dataset, key=ann) for _ in range(5)]
    few = [stack.submit(dataset, key=bob) for _ in range(2)]
    # Of two curators without a turn, the one who asked first comes first.
    assert serve_all(stack) == [many[0], few[0], many[1], few[1], *many[2:]]


def test_a_curator_without_a_turn_comes_before_hundreds(
    stack: Stack, dataset: UUID, ann: str, bob: str
) -> None:
    give_a_turn(stack, dataset, ann)
    copy_queued(stack, stack.submit(dataset, key=ann), times=300)
    small = stack.submit(dataset, key=bob)
    assert upcoming(stack) == small


def copy_queued(stack: Stack, release: UUID, *, times: int) -> None:
    """Queue a release again and again, with earlier and earlier times, and without reservations."""
    stack.scalar(
        "INSERT INTO release (id, dataset_id, population_id, key_id, spec, spec_hash, units,"
        "                     dry_run, created_at)"
        " SELECT gen_random_uuid(), dataset_id, population_id, key_id, spec, spec_hash, units,"
        "        dry_run, created_at - make_interval(secs => number)"
        " FROM release, generate_series(1, :times) AS number WHERE id = :id",
        id=release,
        times=times,
    )


def test_populations_of_one_curator_take_turns(
    stack: Stack, dataset: UUID, other_dataset: UUID, ann: str
) -> None:
    many = [stack.submit(dataset, key=ann) for _ in range(4)]
    few = [stack.submit(other_dataset, key=ann) for _ in range(2)]
    assert serve_all(stack) == [many[0], few[0], many[1], few[1], *many[2:]]


def test_more_populations_are_not_more_turns(
    stack: Stack, dataset: UUID, other_dataset: UUID, ann: str, bob: str
) -> None:
    give_a_turn(stack, dataset, ann)
    wide = [stack.submit(each, key=ann) for each in (dataset, other_dataset)]
    narrow = [stack.submit(dataset, key=bob) for _ in range(2)]
    order = serve_all(stack)
    assert [each in narrow for each in order] == [True, False, True, False]
    assert set(order) == {*wide, *narrow}


@pytest.mark.parametrize("other", ["curator", "population"])
def test_the_one_with_fewer_under_way_is_next(
    stack: Stack, dataset: UUID, other_dataset: UUID, ann: str, bob: str, other: str
) -> None:
    begin(stack, stack.submit(dataset, key=ann))
    waiting = stack.submit(dataset, key=ann)
    place, key = (dataset, bob) if other == "curator" else (other_dataset, ann)
    short = [stack.submit(place, key=key) for _ in range(2)]
    # Each of them is over before the next, while the first release goes on.
    assert serve_all(stack) == [*short, waiting]


def test_dry_runs_come_after_releases_of_their_curator_only(
    stack: Stack, dataset: UUID, ann: str, bob: str
) -> None:
    rehearsal = stack.submit(dataset, key=ann, dry_run=True)
    real = stack.submit(dataset, key=ann)
    assert serve(stack) == real
    stack.submit(dataset, key=bob)
    assert serve(stack) not in {rehearsal, real}
    stack.submit(dataset, key=bob)
    assert upcoming(stack) == rehearsal


def test_interrupted_releases_come_first_once_the_reaper_rang(
    stack: Stack, dataset: UUID, other_dataset: UUID, ann: str
) -> None:
    queued = stack.submit(other_dataset, key=ann)
    interrupted = stack.submit(dataset, key=ann)
    begin(stack, interrupted)
    sweep(stack, interrupted)
    assert upcoming(stack) == queued and upcoming(stack, queued) is None
    stack.expire_lease(interrupted)
    assert upcoming(stack) == queued
    # Each of the two has a message in the queue, but the reaper decides what goes on.
    assert stack.context.task_queue.depth(JOBS) == 2
    sweep(stack, interrupted)
    assert upcoming(stack) == interrupted


def test_a_release_that_is_resumed_uses_up_a_turn(
    stack: Stack, dataset: UUID, ann: str, bob: str
) -> None:
    """A release that kills every worker delays only its own curator."""
    deadly = stack.submit(dataset, key=ann)
    interrupt(stack, deadly)
    patient = [stack.submit(dataset, key=bob) for _ in range(2)]
    for each in patient:
        assert serve(stack) == each
        assert upcoming(stack) == deadly
        interrupt(stack, deadly)


def test_a_dry_run_is_left_to_the_worker_that_has_it(stack: Stack, dataset: UUID, ann: str) -> None:
    release = stack.submit(dataset, key=ann, dry_run=True)
    with DryRunLease.claimed(stack.context.engine, release) as lease:
        assert lease is not None
        with stack.context.transaction() as work:
            progress.start(work.session, release)
        # A reaper that sent its message at the moment when the worker started.
        stack.scalar("UPDATE release SET rang_at = now() WHERE id = :id", id=release)
        assert upcoming(stack) is None
    assert upcoming(stack) == release


@pytest.mark.random
def test_a_message_runs_the_next_release_and_not_the_one_it_names(
    stack: Stack, dataset: UUID, ann: str, bob: str, guard: Guarded, pipe: tuple[int, int]
) -> None:
    """This includes a message of an earlier version, which meant the release that it names."""
    give_a_turn(stack, dataset, ann)
    rang, small = stack.submit(dataset, key=ann), stack.submit(dataset, key=bob)
    before = set(active_apps())
    with open_app(stack.context.settings, stack.context.log, guard, [JOBS]) as app:
        app.tasks[RUN](str(rang))
    assert set(active_apps()) == before, "its connections are closed, and its task queue's"
    assert stack.release(rang)["state"] == "queued"
    assert stack.release(small)["state"] == "succeeded"
    # The guard ends the running job, so it must be told its release.
    assert os.read(pipe[0], 4096).decode().split() == [
        *("start", str(os.getpid()), str(small)),
        *("end", str(os.getpid())),
    ]


@pytest.mark.random
def test_a_release_that_another_worker_has_is_passed_over(
    stack: Stack, dataset: UUID, ann: str, guard: Guarded
) -> None:
    first, second = (stack.submit(dataset, key=ann) for _ in range(2))
    with stack.context.transaction() as work:
        # Chosen by both; the other one was faster.
        ReleaseLease.claim(work.session, first, engine=stack.context.engine, seconds=60)
    take_turn(stack.context, guard)
    assert stack.release(second)["state"] == "succeeded"
    take_turn(stack.context, guard)
    assert stack.release(first)["state"] == "queued"


@pytest.mark.random
def test_what_was_cancelled_costs_no_turn(
    stack: Stack, dataset: UUID, ann: str, guard: Guarded
) -> None:
    cancelled, wanted = (stack.submit(dataset, key=ann) for _ in range(2))
    with stack.context.transaction() as work:
        ReleaseLease.claim(work.session, cancelled, engine=stack.context.engine, seconds=60)
    stack.cancel(cancelled)
    stack.expire_lease(cancelled)
    take_turn(stack.context, guard)
    assert stack.release(cancelled)["state"] == "cancelled"
    assert stack.release(wanted)["state"] == "succeeded"


def test_the_reaper_sends_as_many_messages_as_are_missing(
    stack: Stack, dataset: UUID, ann: str
) -> None:
    """A worker that took a message and died before its claim leaves one message too few."""
    releases = [stack.submit(dataset, key=ann) for _ in range(3)]
    assert stack.context.broker.rpop(JOBS) is not None
    sweep(stack, *releases)
    assert stack.context.task_queue.depth(JOBS) == len(releases)
    assert serve_all(stack) == releases
