"""Leftovers of killed processes are deleted from the storage, and objects in use are kept."""

import os
import subprocess
import sys
import time
import uuid
from pathlib import Path
from uuid import UUID

import pytest

from service.data.ledger.anchor import ChainHead, seal
from service.data.ledger.errors import DatabaseBehind
from tests.worker.support import ROOT, Stack, csv_rows
from worker.ingest import ingest_dataset
from worker.leftovers import delete_leftovers
from worker.reaper import Reaper
from worker.releases import run_release

DAY = 86400.0

KILLED_WHILE_WRITING = """
import os, signal, sys
from service.data.storage import open_storage

def pieces():
    for _ in range(20):
        yield bytes(2**20)
    os.kill(os.getpid(), signal.SIGKILL)

open_storage(sys.argv[1]).write(sys.argv[2], pieces())
"""


def write_and_be_killed(stack: Stack, key: str) -> list[Path]:
    """Leave a partial object, as a process that is killed while writing does."""
    command = [sys.executable, "-c", KILLED_WHILE_WRITING, f"file://{stack.folder}/objects", key]
    assert subprocess.run(command, cwd=ROOT).returncode < 0
    left = stack.objects(key)
    assert left, "it was killed before it had written anything"
    return left


def age(*files: Path, seconds: float = 2 * DAY) -> None:
    """Backdate files."""
    for file in files:
        os.utime(file, (time.time() - seconds,) * 2)


def stored(stack: Stack, key: str) -> Path:
    stack.context.storage.write(key, [b"encrypted"])
    return stack.folder / "objects" / key


def epoch_of(stack: Stack, dataset: UUID) -> int:
    found = stack.scalar("SELECT lease_epoch FROM dataset WHERE id = :id", id=dataset)
    return int(found)


@pytest.mark.parametrize("place", ["drafts", "datasets/{dataset}/uploads"])
def test_interrupted_writes_are_deleted_when_they_are_old(
    stack: Stack, dataset: UUID, place: str
) -> None:
    left = write_and_be_killed(stack, f"{place.format(dataset=dataset)}/{uuid.uuid4().hex}")
    delete_leftovers(stack.context, older_than=DAY)
    assert all(file.exists() for file in left), "somebody may still be writing"
    age(*left)
    assert delete_leftovers(stack.context, older_than=DAY) >= len(left)
    assert not any(file.exists() for file in left)


def test_drafts_and_probes(stack: Stack) -> None:
    old = [stored(stack, f"{prefix}/{uuid.uuid4().hex}") for prefix in ("drafts", "probes")]
    young = stored(stack, f"drafts/{uuid.uuid4().hex}")
    age(*old)
    assert delete_leftovers(stack.context, older_than=DAY) == 2
    assert not any(file.exists() for file in old)
    assert young.exists()


def test_uploads_that_were_never_recorded(stack: Stack) -> None:
    dataset = stack.uploaded()
    (recorded,) = stack.objects(f"datasets/{dataset}/uploads")
    orphan = stored(stack, f"datasets/{dataset}/uploads/{uuid.uuid4().hex}")
    age(recorded, orphan)
    delete_leftovers(stack.context, older_than=DAY)
    assert recorded.exists() and not orphan.exists()
    ingest_dataset(stack.context, dataset)
    assert stack.show("datasets", dataset)["state"] == "ready"


def test_rows_of_attempts_that_died(stack: Stack, dataset: UUID) -> None:
    current = stack.objects(f"datasets/{dataset}/tables")
    stack.scalar("UPDATE dataset SET lease_epoch = lease_epoch + 1 WHERE id = :id", id=dataset)
    epoch = epoch_of(stack, dataset)
    for file in current:
        moved = Path(str(file).replace(f"/tables/{epoch - 1}/", f"/tables/{epoch}/"))
        moved.parent.mkdir(parents=True, exist_ok=True)
        moved.write_bytes(file.read_bytes())
        age(file, moved)
    delete_leftovers(stack.context, older_than=DAY)
    left = stack.objects(f"datasets/{dataset}/tables")
    assert len(left) == len(current)
    assert all(f"/tables/{epoch}/" in str(file) for file in left)


def test_rows_that_are_being_written_stay_however_long_it_takes(stack: Stack) -> None:
    dataset = stack.uploaded()
    stack.scalar("UPDATE dataset SET lease_epoch = 3 WHERE id = :id", id=dataset)
    writing = stored(stack, f"datasets/{dataset}/tables/3/rows/0")
    dead = stored(stack, f"datasets/{dataset}/tables/2/rows/0")
    age(writing, dead)
    delete_leftovers(stack.context, older_than=DAY)
    assert writing.exists() and not dead.exists()


@pytest.mark.parametrize("state", ["rejected", "deleted"])
def test_everything_of_datasets_that_are_over(stack: Stack, state: str) -> None:
    dataset = stack.uploaded(content=b"not a table" if state == "rejected" else csv_rows())
    ingest_dataset(stack.context, dataset)
    if state == "deleted":
        assert stack.http.delete(f"/v1/datasets/{dataset}").status_code == 204
    assert stack.show("datasets", dataset)["state"] == state
    epoch = epoch_of(stack, dataset)
    left = [
        stored(stack, f"datasets/{dataset}/tables/{epoch}/rows/0"),
        stored(stack, f"datasets/{dataset}/uploads/{uuid.uuid4().hex}"),
    ]
    age(*left)
    delete_leftovers(stack.context, older_than=DAY)
    assert not any(file.exists() for file in left)


@pytest.mark.random
def test_a_whole_installation_survives(stack: Stack, dataset: UUID) -> None:
    release = stack.submit(dataset)
    run_release(stack.context, release)
    shown = stack.release(release)
    age(*stack.objects())
    delete_leftovers(stack.context, older_than=DAY)
    for artifact in shown["artifacts"]:
        assert len(stack.artifact(release, artifact["name"])) == artifact["size"]
    again = stack.submit(dataset)
    run_release(stack.context, again)
    assert stack.release(again)["state"] == "succeeded"


def test_objects_of_unknown_datasets_stay(stack: Stack) -> None:
    foreign = [
        stored(stack, f"datasets/{uuid.uuid4()}/uploads/{uuid.uuid4().hex}"),
        stored(stack, f"datasets/{uuid.uuid4()}/tables/1/rows/0"),
        stored(stack, "datasets/readme"),
    ]
    age(*foreign)
    delete_leftovers(stack.context, older_than=DAY)
    assert all(file.exists() for file in foreign)


def test_a_restored_database_deletes_nothing(stack: Stack, population: UUID) -> None:
    old = stored(stack, f"drafts/{uuid.uuid4().hex}")
    age(old)
    context = stack.context
    anchor = stack.folder / "anchor.json"
    newest = anchor.read_bytes()
    # The anchored database had an entry that this one lacks.
    lost = ChainHead(population, 1000, bytes(32))
    anchor.write_bytes(seal((lost,), context.signing_key))
    try:
        with pytest.raises(DatabaseBehind):
            delete_leftovers(context, older_than=DAY)
    finally:
        anchor.write_bytes(newest)
    assert old.exists()


def test_the_reaper_searches_now_and_then(stack: Stack) -> None:
    reaper = Reaper(stack.context, resend_seconds=3600, max_attempts=3, leftover_seconds=DAY)
    first, second = (stored(stack, f"drafts/{uuid.uuid4().hex}") for _ in range(2))
    age(first)
    reaper.sweep()
    assert not first.exists() and second.exists()
    assert "leftovers_deleted" in stack.log.getvalue()
    age(second)
    reaper.sweep()
    assert second.exists(), "an hour has not passed"
