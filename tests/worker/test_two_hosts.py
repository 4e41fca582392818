"""Two workers that share only Postgres, the broker and S3: one queue, one ledger, one anchor."""

import base64
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest

from scrim.verify import verify
from service.embedded import Command
from tests.s3 import create_bucket, running_s3, s3_settings
from tests.worker.support import Stack, await_that, running_stack

pytestmark = [pytest.mark.e2e, pytest.mark.random]

BATCH = 6


@dataclass(frozen=True)
class Host:
    """A machine with one worker, which does its tasks in its main process."""

    folder: Path
    worker: Command

    def is_holding(self, stack: Stack, release: UUID) -> bool:
        """Whether the worker was the last to claim a release."""
        holder = stack.scalar(
            "SELECT lease_holder FROM ledger.reservation WHERE release_id = :id", id=release
        )
        return str(holder).endswith(f":{self.worker.pid}")

    def files(self) -> list[Path]:
        """Everything that lies on its disks."""
        return [path for path in self.folder.rglob("*") if path.is_file()]


@dataclass(frozen=True)
class Site:
    """A service, and two hosts beside it."""

    stack: Stack
    north: Host
    south: Host


@pytest.fixture
def site(
    postgres_url: str, valkey_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Site]:
    place = folder / "site"
    (place / "service").mkdir(parents=True)
    with ExitStack() as held:
        endpoint = held.enter_context(running_s3())
        for name, value in s3_settings(endpoint).items():
            monkeypatch.setenv(name, value)
        stack = held.enter_context(
            running_stack(
                postgres_url,
                valkey_url.removesuffix("/0") + "/3",
                place / "service",
                SCRIM_STORAGE_URL=f"s3://{create_bucket(endpoint)}/objects",
                SCRIM_ANCHOR_URL=f"s3://{create_bucket(endpoint)}/anchor.json",
                SCRIM_LEASE_SECONDS="4",
                SCRIM_REAPER_SECONDS="0.2",
                SCRIM_RESEND_SECONDS="1",
                SCRIM_RETRY_SECONDS="0.1",
                SCRIM_MAX_ATTEMPTS="1000",
                **s3_settings(endpoint),
            )
        )

        def start(name: str, *arguments: str) -> Host:
            home = place / name
            for part in ("home", "data", "scratch"):
                (home / part).mkdir(parents=True)
            process = stack.process(
                name,
                *arguments,
                HOME=str(home / "home"),
                TMPDIR=str(home / "scratch"),
                SCRIM_DATA_DIR=str(home / "data"),
            )
            process.start()
            held.callback(process.stop)
            return Host(home, process)

        start("west", "-m", "worker.reaper")
        worker = ("-m", "worker", "--pool=solo")
        yield Site(stack, start("north", *worker), start("south", *worker))
        stack.check()


def test_two_hosts_share_a_queue_and_resume_each_other(site: Site, tmp_path: Path) -> None:
    stack = site.stack
    population = stack.population()
    dataset = stack.uploaded(population)
    await_that(lambda: stack.show("datasets", dataset)["state"] == "ready", "the ingest")

    batch = [stack.submit(dataset, mechanism={"name": "mwem", "rounds": 40}) for _ in range(BATCH)]
    for release in batch:
        await_success(stack, release)
    by_north = [release for release in batch if site.north.is_holding(stack, release)]
    by_south = [release for release in batch if site.south.is_holding(stack, release)]
    assert by_north and by_south and len(by_north) + len(by_south) == BATCH

    long = stack.submit(dataset, mechanism={"name": "mwem", "rounds": 200})
    await_that(lambda: len(stack.journal(long)) > 20, "a release under way")
    victim, survivor = site.north, site.south
    if survivor.is_holding(stack, long):
        victim, survivor = survivor, victim
    assert victim.is_holding(stack, long)
    os.kill(victim.worker.pid, signal.SIGKILL)
    committed = stack.journal(long)
    assert len(committed) < 401
    await_success(stack, long)
    assert survivor.is_holding(stack, long)
    journal = stack.journal(long)
    assert journal[: len(committed)] == committed and len(journal) == 401

    for release in (by_north[0], by_south[0], long):
        check_download(stack, release, tmp_path / str(release))
    spent = sum(each.price_units for job in (*batch, long) for each in stack.journal(job))
    account = stack.account(population)
    assert (account.spent_units, account.reserved_units) == (spent, 0)
    # Nothing was kept on any machine: neither rows nor artifacts, nor an anchor of its own.
    assert site.north.files() == site.south.files() == []
    assert not (stack.folder / "anchor.json").exists() and stack.objects() == []


def await_success(stack: Stack, release: UUID) -> None:
    def has_succeeded() -> bool:
        shown = stack.release(release)
        assert shown["state"] in {"queued", "running", "succeeded"}, shown
        return bool(shown["state"] == "succeeded")

    await_that(has_succeeded, "the end of a release")


def check_download(stack: Stack, release: UUID, folder: Path) -> None:
    """Check that the downloads match the service's certificate."""
    folder.mkdir()
    for each in stack.release(release)["artifacts"]:
        (folder / each["name"]).write_bytes(stack.artifact(release, each["name"]))
    public = stack.context.signing_key.public_key().public_bytes_raw()
    report = verify(
        folder / "certificate.json",
        sorted(folder.iterdir()),
        public_key=base64.b64encode(public).decode(),
    )
    assert report.ok and report.unchecked == (), report
