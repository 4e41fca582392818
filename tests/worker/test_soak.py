"""Random kills during many releases: every one ends, and the ledger tells the truth throughout.

SCRIM_SOAK_RELEASES and SCRIM_SOAK_KILLS set the size, SCRIM_SOAK_SEED repeats a choice of moments.
"""

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import UUID

import pytest

from service.embedded import Command
from tests.worker.support import Stack, await_that, running_stack

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

RELEASES = int(os.environ.get("SCRIM_SOAK_RELEASES", "12"))
KILLS = int(os.environ.get("SCRIM_SOAK_KILLS", "8"))
SEED = int(os.environ.get("SCRIM_SOAK_SEED", "0"))
WORKERS = 2
LONGEST_PAUSE = 4.0
PATIENCE = 300.0 + 30.0 * (RELEASES + KILLS)
FINAL = {"succeeded", "failed", "cancelled"}


@pytest.fixture
def stack(postgres_url: str, valkey_url: str, folder: Path) -> Iterator[Stack]:
    place = folder / "soak"
    place.mkdir()
    with running_stack(
        postgres_url,
        valkey_url.removesuffix("/0") + "/2",
        place,
        SCRIM_LEASE_SECONDS="2",
        SCRIM_REAPER_SECONDS="0.2",
        SCRIM_RING_SECONDS="1",
        SCRIM_MAX_ATTEMPTS=str(KILLS + 10),
    ) as stack:
        yield stack
        stack.check()


def descendants(pid: int) -> list[int]:
    """A worker and its children."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return []
    return [pid, *map(int, children)]


def kill_something(workers: list[Command], chance: random.Random) -> None:
    """One process of one worker dies; a worker that is dead altogether is replaced."""
    victim = chance.choice(workers)
    found = descendants(victim.pid) if victim.is_running() else []
    if found:
        os.kill(chance.choice(found), signal.SIGKILL)


def test_every_release_ends(stack: Stack) -> None:
    chance = random.Random(SEED)
    with ExitStack() as held:
        reaper = stack.process("reaper", "-m", "worker.reaper")
        workers = [
            stack.process(f"worker-{number}", "-m", "worker", "--queue=jobs")
            for number in range(WORKERS)
        ]
        for process in (reaper, *workers):
            process.start()
            held.callback(process.stop)
        population = stack.population(cap={"rho": 100.0})
        dataset = stack.uploaded(population)
        await_that(
            lambda: stack.show("datasets", dataset)["state"] == "ready", "the ingest", timeout=120
        )
        releases = [
            stack.submit(dataset, mechanism={"name": "mwem", "rounds": 3 + number % 40})
            for number in range(RELEASES)
        ]
        for _ in range(KILLS):
            time.sleep(chance.uniform(0, LONGEST_PAUSE))
            kill_something(workers, chance)
            for worker in workers:
                if not worker.is_running():
                    worker.start()
        await_that(
            lambda: all(has_ended(stack, each) for each in releases), "ends", timeout=PATIENCE
        )
    check_accounts(stack, population, releases)


def has_ended(stack: Stack, release: UUID) -> bool:
    return stack.release(release)["state"] in FINAL


def check_accounts(stack: Stack, population: UUID, releases: list[UUID]) -> None:
    spent = 0
    for number, release in enumerate(releases):
        assert stack.release(release)["state"] == "succeeded"
        journal = stack.journal(release)
        assert len(journal) == 1 + 2 * (3 + number % 40)
        reservation = stack.reservation(release)
        assert reservation.state == "closed"
        assert reservation.spent_units == sum(each.price_units for each in journal)
        spent += reservation.spent_units
    account = stack.account(population)
    assert (account.spent_units, account.reserved_units) == (spent, 0)
