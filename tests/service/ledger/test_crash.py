"""Postgres is killed during its work: acknowledged operations exist exactly once."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy.exc import DBAPIError

from service.data.ledger.anchor import advance_anchor, check_anchor
from service.data.ledger.anchor_store import AnchorStore, open_anchor_store
from service.data.ledger.records import LedgerOperation
from service.embedded.postgres import PostgresServer
from tests.patience import PATIENCE

from .support import Ledger, charge

WORKERS = 4
CRASHES = 3
COMMITS_BEFORE_CRASH = 40


@pytest.fixture
def durable_server(tmp_path: Path) -> Iterator[PostgresServer]:
    with PostgresServer(tmp_path, durable=True) as server:
        yield server


@dataclass
class Worker:
    """Commits one operation after the other until the database is down."""

    ledger: Ledger
    release: UUID
    acknowledged: list[LedgerOperation] = field(default_factory=list)
    attempted: list[LedgerOperation] = field(default_factory=list)

    def work(self, epoch: int, done: threading.Semaphore) -> None:
        try:
            while True:
                sequence = len(self.attempted)
                self.attempted.append(charge(sequence, 1 + sequence % 3, sequence, epoch))
                self.ledger.commit(self.release, epoch, self.attempted[-1])
                self.acknowledged.append(self.attempted[-1])
                done.release()
        except DBAPIError:
            return

    def reconcile(self) -> None:
        """Besides acknowledged operations, only the one whose answer was lost may exist."""
        journal = self.ledger.journal(self.release)
        assert list(journal) in (self.acknowledged, self.attempted)
        self.acknowledged, self.attempted = list(journal), list(journal)


def crash_under_load(server: PostgresServer, workers: list[Worker], anchoring: "Anchoring") -> None:
    done = threading.Semaphore(0)
    threads = [
        threading.Thread(target=worker.work, args=(worker.ledger.claim(worker.release), done))
        for worker in workers
    ]
    threads.append(threading.Thread(target=anchoring.work))
    for thread in threads:
        thread.start()
    for _ in range(COMMITS_BEFORE_CRASH):
        assert done.acquire(timeout=PATIENCE)
    server.kill()
    for thread in threads:
        thread.join(timeout=PATIENCE)
        assert not thread.is_alive()


@dataclass
class Anchoring:
    """Anchors as often as it can until the database is down."""

    ledger: Ledger
    store: AnchorStore
    key: Ed25519PrivateKey
    written: int = 0

    def work(self) -> None:
        try:
            while True:
                advance_anchor(self.ledger.app, self.store, key=self.key)
                self.written += 1
        except DBAPIError:
            return


def test_killed_mid_commit(durable_server: PostgresServer, tmp_path: Path) -> None:
    ledger = Ledger(durable_server.url)
    key = Ed25519PrivateKey.generate()
    store = open_anchor_store((tmp_path / "anchor.json").as_uri())
    advance_anchor(ledger.app, store, key=key)
    population = ledger.open_account(10**9)
    workers = [Worker(ledger, ledger.reserve(population, 10**6)) for _ in range(WORKERS)]
    anchoring = Anchoring(ledger, store, key)
    for _ in range(CRASHES):
        crash_under_load(durable_server, workers, anchoring)
        ledger.detach()
        durable_server.start()
        ledger.attach()
        # The anchor is written after the commit that it covers, so it is never ahead.
        check_anchor(ledger.app, store, key=key.public_key())
        for worker in workers:
            worker.reconcile()
            ledger.expire_lease(worker.release)
        ledger.check()
        spent = sum(each.price_units for worker in workers for each in worker.acknowledged)
        assert ledger.balance(population) == (spent, WORKERS * 10**6 - spent)
    assert anchoring.written > 0
    ledger.detach()
