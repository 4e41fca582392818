"""One curator fills the queue; another one's upload and release do not wait for it.

Real workers, one for releases and one for uploads, as `scrim up` starts them.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.worker.support import Stack, await_that, running_stack

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.random]

QUEUED = 300
LONGEST_WAIT_SECONDS = 10.0


@pytest.fixture
def busy(postgres_url: str, valkey_url: str, tmp_path: Path) -> Iterator[Stack]:
    """An installation with one worker for each of the two queues, and a reaper."""
    with ExitStack() as held:
        stack = held.enter_context(
            running_stack(
                postgres_url,
                valkey_url.removesuffix("/0") + "/5",
                tmp_path,
                SCRIM_MAX_QUEUED_DRY_RUNS=str(QUEUED),
            )
        )
        held.callback(stack.context.broker.flushdb)
        for name, *arguments in (
            ("reaper", "-m", "worker.reaper"),
            ("uploads", "-m", "worker", "--queue=ingest"),
            ("jobs", "-m", "worker", "--queue=jobs"),
        ):
            process = stack.process(name, *arguments)
            process.start()
            held.callback(process.stop)
        yield stack
        stack.check()


@pytest.mark.parametrize("kind", ["dry runs", "releases"])
def test_a_small_release_starts_behind_a_full_queue(
    busy: Stack, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first = ingested(busy)
    many: dict[str, Any] = {"key": busy.curator(), "dry_run": kind == "dry runs"}
    for _ in range(QUEUED):
        busy.submit(first, budget={"rho": 0.001}, **many)
    await_that(lambda: started(busy) > 1, "a worker that is at it")
    # Uploaded, ingested and asked for while the others wait.
    second = ingested(busy)
    release = busy.submit(second, key=busy.curator())
    await_that(lambda: busy.release(release)["state"] != "queued", "the start of the release")
    waited = busy.scalar(
        "SELECT extract(epoch FROM started_at - created_at) FROM release WHERE id = :id", id=release
    )
    queued = busy.scalar("SELECT count(*) FROM release WHERE state = 'queued'")
    with capsys.disabled():
        print(f"\nbehind {queued} queued {kind}: started after {waited:.2f} seconds")
    assert queued > QUEUED / 2, "the queue was not full"
    assert waited < LONGEST_WAIT_SECONDS
    # The one that had its turn at the moment of the submission.
    assert overtakers(busy, release) <= 1
    await_that(lambda: busy.release(release)["state"] == "succeeded", "the end of the release")


def ingested(stack: Stack) -> UUID:
    dataset = stack.uploaded()
    await_that(lambda: stack.show("datasets", dataset)["state"] == "ready", "the ingest")
    return dataset


def overtakers(stack: Stack, release: UUID) -> int:
    """The number of other releases that started while a release was queued."""
    return int(
        stack.scalar(
            "SELECT count(*) FROM release AS o JOIN release AS r"
            " ON o.started_at > r.created_at AND o.started_at < r.started_at WHERE r.id = :id",
            id=release,
        )
    )


def started(stack: Stack) -> int:
    return int(stack.scalar("SELECT count(*) FROM release WHERE started_at IS NOT NULL"))
