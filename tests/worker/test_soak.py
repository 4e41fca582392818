"""Everything fails again and again while releases run: all of them succeed, and no unit is lost.

Workers and Postgres are killed, the broker loses everything, the disk fills up and processes run out of
memory, in random order. An admin resumes failed releases. `make soak` runs it at full size; the
variables below set the size, and SCRIM_SOAK_SEED repeats an order. Filling the disk takes the right to
mount one; without it, those events are left out and the summary says so.
"""

import os
import random
import resource
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from service.embedded import Command, PostgresServer, ValkeyServer
from service.embedded.supervisor import Backoff, Supervised, Watch
from service.releases.resumption import RESUMABLE
from tests.worker.support import Stack, await_that, running_stack
from tests.worker.watcher import Watcher

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.random]

RELEASES = int(os.environ.get("SCRIM_SOAK_RELEASES", "8"))
KILLS = int(os.environ.get("SCRIM_SOAK_KILLS", "16"))
RESTARTS = int(os.environ.get("SCRIM_SOAK_RESTARTS", "4"))
WIPES = int(os.environ.get("SCRIM_SOAK_WIPES", "4"))
FILLS = int(os.environ.get("SCRIM_SOAK_FILLS", "4"))
SQUEEZES = int(os.environ.get("SCRIM_SOAK_SQUEEZES", "4"))
SEED = int(os.environ.get("SCRIM_SOAK_SEED", "0"))

POPULATIONS = 3
WORKERS = 2
TICK_SECONDS = 0.05
LONGEST_PAUSE = 5.0
"""Longest pause between two faults; a worker needs seconds to start, and must make progress."""
DISK_BYTES = 2**26
PATIENCE = 300.0 + 30.0 * RELEASES
FINAL = {"succeeded", "failed", "cancelled"}


@dataclass
class Soak:
    """An installation with injected faults, and their counts."""

    stack: Stack
    postgres: PostgresServer
    workers: list[Command]
    watches: list[Watch]
    chance: random.Random
    disk: Path | None
    """A small disk that holds everything but the servers; None if none could be mounted."""
    datasets: list[UUID] = field(default_factory=list)
    wanted: list[dict[str, Any]] = field(default_factory=list)
    releases: dict[UUID, dict[str, Any]] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)

    def tick(self) -> None:
        """Restart dead processes and submit releases between two faults."""
        for watch in self.watches:
            watch.restart_if_dead()
        self._submit_wanted()
        time.sleep(TICK_SECONDS)

    def rest(self) -> None:
        """Let a random time pass."""
        end = time.monotonic() + self.chance.uniform(0, LONGEST_PAUSE)
        while time.monotonic() < end:
            self.tick()

    # The faults. Each one happens when it is called, however long it takes to find a process.

    def kill_worker(self) -> None:
        """One process of one worker dies: the main one, or the one that does the work."""
        while True:
            if found := _processes(self.chance.choice(self.workers)):
                # It may have ended by itself since we looked; then it does not count.
                with suppress(ProcessLookupError):
                    os.kill(self.chance.choice(found), signal.SIGKILL)
                    return
            self.tick()

    def kill_postgres(self) -> None:
        """All of Postgres dies, or only its main process, which leaves sessions behind."""
        while not self.postgres.is_running():
            self.tick()
        if self.chance.random() < 0.5:
            self.postgres.kill()
        else:
            os.kill(self.postgres.pid, signal.SIGKILL)

    def wipe_broker(self) -> None:
        """The broker forgets every message, queue and counter."""
        self.stack.context.broker.flushall()

    def fill_disk(self) -> None:
        """The disk is full for a while."""
        if self.disk is None:
            return
        ballast = self.disk / "ballast"
        with ballast.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(2**20))
        self.rest()
        ballast.unlink()

    def squeeze_memory(self) -> None:
        """A process of a worker can allocate nothing more for a while."""
        while not (found := _processes(self.chance.choice(self.workers))):
            self.tick()
        victim = self.chance.choice(found)
        with suppress(ProcessLookupError):
            _, hard = resource.prlimit(victim, resource.RLIMIT_DATA)
            resource.prlimit(victim, resource.RLIMIT_DATA, (1, hard))
            self.rest()
            resource.prlimit(victim, resource.RLIMIT_DATA, (hard, hard))

    def resume_failed(self) -> None:
        """An admin resumes failed releases."""
        for release in self.releases:
            shown = self.stack.release(release)
            if shown["state"] == "failed":
                assert shown["error"]["type"] in RESUMABLE, shown
                answer = self.stack.http.post(f"/v1/releases/{release}/resume")
                assert answer.status_code == 200, answer.text
                self.done["resumed"] += 1

    def want_release(self) -> None:
        """A curator wants one more release, and repeats the request until it is answered."""
        number = len(self.wanted) + len(self.releases)
        outputs: dict[str, Any] = {"rows": 60} | ({"certify": {}} if number % 2 else {})
        self.wanted.append(
            {
                "dataset_id": str(self.datasets[number % POPULATIONS]),
                "workload": [{"type": "marginals", "k": 2}],
                "mechanism": {"name": "mwem", "rounds": 40 + 20 * (number % 11)},
                "budget": {"rho": 0.1},
                "outputs": outputs,
            }
        )

    def _submit_wanted(self) -> None:
        for body in list(self.wanted):
            # The same key each time, so that no repetition becomes a second release.
            key = f"release-{len(self.releases)}"
            try:
                answer = self.stack.http.post(
                    "/v1/releases", json=body, headers={"Idempotency-Key": key}
                )
            except httpx.TransportError:
                return
            if answer.status_code >= 500:
                return
            assert answer.status_code == 202, answer.text
            self.wanted.remove(body)
            self.releases[UUID(answer.json()["id"])] = body


def _processes(worker: Command) -> list[int]:
    """A worker's main process and its children; none while it is dead."""
    if not worker.is_running():
        return []
    try:
        children = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()
    except FileNotFoundError:
        return []
    return [worker.pid, *map(int, children)]


@contextmanager
def small_disk(folder: Path) -> Iterator[Path | None]:
    """A disk of DISK_BYTES in a folder; None where we may not mount one."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    try:
        is_mounted = subprocess.run(command, capture_output=True).returncode == 0
    except FileNotFoundError:
        is_mounted = False
    try:
        yield folder if is_mounted else None
    finally:
        if is_mounted:
            # Lazily: a process that is being killed may still have a file open there.
            subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def soak() -> Iterator[Soak]:
    """Durable servers of its own, a service, two workers and a reaper, watched as by `scrim up`."""
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="scrim-soak-")))
        postgres = held.enter_context(PostgresServer(folder / "servers"))
        valkey = held.enter_context(ValkeyServer(folder / "servers"))
        place = folder / "installation"
        place.mkdir()
        disk = held.enter_context(small_disk(place))
        stack = held.enter_context(
            running_stack(
                postgres.url,
                valkey.url,
                place,
                SCRIM_LEASE_SECONDS="2",
                SCRIM_REAPER_SECONDS="0.2",
                SCRIM_RESEND_SECONDS="1",
                SCRIM_RETRY_SECONDS="0.5",
            )
        )
        workers = [stack.process(f"worker-{number}", "-m", "worker") for number in range(WORKERS)]
        reaper = stack.process("reaper", "-m", "worker.reaper")
        for process in (reaper, *workers):
            process.start()
            held.callback(process.stop)
        # Killed so often, they would wait half a minute for each restart.
        impatient = Backoff(longest=0.5)
        supervised: tuple[Supervised, ...] = (postgres, valkey, reaper, *workers)
        watches = [Watch(each, impatient) for each in supervised]
        yield Soak(stack, postgres, workers, watches, random.Random(SEED), disk)


def test_every_release_succeeds_and_no_unit_is_lost(
    soak: Soak, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = soak.stack
    populations = [stack.population(cap={"rho": 100.0}) for _ in range(POPULATIONS)]
    soak.datasets = [stack.uploaded(population) for population in populations]

    def are_ready() -> bool:
        return all(stack.show("datasets", each)["state"] == "ready" for each in soak.datasets)

    await_that(are_ready, "ingest")
    with Watcher(stack.owner) as watcher:
        strike(soak)
        await_that(lambda: have_ended(soak), "the end of every release", timeout=PATIENCE)
    watcher.look()
    assert watcher.faults == []
    assert len(soak.releases) == RELEASES == stack.scalar("SELECT count(*) FROM release")
    for release, body in soak.releases.items():
        check_end(stack, release, body)
    spent = check_balances(stack, populations, list(soak.releases))
    stack.check()
    with capsys.disabled():
        print(summary(soak, watcher, spent))


def strike(soak: Soak) -> None:
    """Everything in random order, with random pauses."""
    blows: list[Callable[[], None]] = [
        *[soak.kill_worker] * KILLS,
        *[soak.kill_postgres] * RESTARTS,
        *[soak.wipe_broker] * WIPES,
        *[soak.fill_disk] * FILLS,
        *[soak.squeeze_memory] * SQUEEZES,
    ]
    # Releases come early, so that there is work when the last fault happens.
    moments = [(soak.chance.random(), blow) for blow in blows]
    moments += [(soak.chance.uniform(0, 0.6), soak.want_release) for _ in range(RELEASES)]
    for _, action in sorted(moments, key=lambda moment: moment[0]):
        soak.rest()
        action()
        soak.done[action.__name__] += 1


def have_ended(soak: Soak) -> bool:
    soak.tick()
    if soak.wanted or not soak.postgres.is_running():
        return False
    soak.resume_failed()
    return all(soak.stack.release(each)["state"] in FINAL for each in soak.releases)


def check_end(stack: Stack, release: UUID, body: dict[str, Any]) -> None:
    """Check that a release succeeded, and that each step was charged once, in order."""
    shown = stack.release(release)
    steps = ["rows", *["select", "measure"] * body["mechanism"]["rounds"]]
    # The largest error, the total error of the only item, and the total errors of its columns.
    steps += ["certify"] * 3 if "certify" in body["outputs"] else []
    kinds = [each.kind for each in stack.journal(release)]
    assert shown["state"] == "succeeded", (
        shown,
        [line for line in stack.logs().splitlines() if b"release_failed" in line],
    )
    assert kinds == steps
    assert len(stack.artifact(release, "synthetic.csv").splitlines()) == 61


def check_balances(stack: Stack, populations: list[UUID], releases: list[UUID]) -> int:
    """What was spent is what was journaled, in every reservation and account; nothing is held."""
    journaled = 0
    for release in releases:
        reservation = stack.reservation(release)
        prices = sum(each.price_units for each in stack.journal(release))
        assert (reservation.state, reservation.spent_units) == ("closed", prices)
        assert prices <= reservation.amount_units
        journaled += prices
    accounts = [stack.account(population) for population in populations]
    assert [account.reserved_units for account in accounts] == [0] * POPULATIONS
    assert sum(account.spent_units for account in accounts) == journaled
    return journaled


def summary(soak: Soak, watcher: Watcher, spent: int) -> str:
    """The faults and the results."""
    stack = soak.stack
    attempts = stack.scalar("SELECT sum(lease_epoch) FROM ledger.reservation")
    entries = stack.scalar("SELECT count(*) FROM ledger.audit")
    lines = {
        "seed": SEED,
        "releases succeeded": len(soak.releases),
        "resumed by an admin": soak.done["resumed"],
        "attempts": attempts,
        "workers killed": soak.done["kill_worker"],
        "Postgres killed": soak.done["kill_postgres"],
        "broker wiped": soak.done["wipe_broker"],
        "disk filled": "never: no disk could be mounted"
        if soak.disk is None
        else soak.done["fill_disk"],
        "memory squeezed": soak.done["squeeze_memory"],
        "operations": watcher.outcomes,
        "units spent = journaled": f"{spent:,}",
        "units still reserved": stack.scalar("SELECT sum(reserved_units) FROM ledger.account"),
        "watcher": f"{watcher.looks} looks, {watcher.outages} while Postgres was down, "
        f"{len(watcher.faults)} outcomes, ends or balances that changed",
        "audit": f"{entries} entries in {POPULATIONS} chains and their anchor, verified",
    }
    return "\n" + "\n".join(f"{name:<24} {value}" for name, value in lines.items())
