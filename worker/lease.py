"""Leases of workers on jobs. Each is renewed in a thread of its own, and fences its holder.

release   the ledger's lease, with a rising epoch: a stale one commits nothing
dataset   the lease columns of its row, likewise
dry run   a lock of a database session. Nothing is charged, and the first to finish wins, so
          two dry runs at once would do no harm; the lock only avoids the extra work
"""

import hashlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self
from uuid import UUID

from sqlalchemy import Connection, Engine, text
from sqlalchemy.orm import Session
from structlog.typing import FilteringBoundLogger

from service.data import ingest
from service.data.ledger import repository as ledger
from service.data.ledger.errors import StaleLease
from service.data.work import unit_of_work
from worker.errors import OUTAGES, LeaseLost

BEATS_PER_LEASE = 3
"""Renewals in the time of a lease, so that two may fail."""
_AT_ONCE_SECONDS = 1e-3
"""A lease of this length has ended when another worker looks."""
_WAITED_OUT: tuple[type[Exception], ...] = (*OUTAGES, MemoryError)

_EPOCH = text("SELECT lease_epoch FROM ledger.reservation WHERE release_id = :id")
_TRY_LOCK = text("SELECT pg_try_advisory_lock(:key)")
# Read only: trying to take the lock would briefly keep a worker from taking it.
_LOCKED = text("""
    SELECT EXISTS (
        SELECT FROM pg_locks
        WHERE locktype = 'advisory' AND granted AND objsubid = 1
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND classid::bigint = :high AND objid::bigint = :low)
""")


class Lease(Protocol):
    """The right to work on a job."""

    def renew(self) -> bool:
        """Renew it. False: it was taken over or withdrawn."""

    def require(self, session: Session) -> None:
        """Raise LeaseLost if another worker holds the lease."""

    def let_go(self, session: Session) -> bool:
        """Leave the job to the next worker, in this transaction. False: another worker has it already."""

    def end(self, session: Session) -> None:
        """Give it up in the transaction that ends the job; or raise LeaseLost."""


def holder(process: int) -> str:
    """The name of a process of this machine in a lease."""
    return f"{socket.gethostname()[:100]}:{process}"


@dataclass(frozen=True)
class ReleaseLease:
    """The ledger's lease on a release."""

    engine: Engine
    release_id: UUID
    epoch: int
    seconds: float

    @classmethod
    def claim(cls, session: Session, release_id: UUID, *, engine: Engine, seconds: float) -> Self:
        """Take the lease; LeaseHeld while another is active, Closed if the job is over."""
        epoch = ledger.claim(session, release_id, holder=holder(os.getpid()), lease_seconds=seconds)
        return cls(engine, release_id, epoch, seconds)

    def renew(self) -> bool:
        """Keep it, in a transaction of its own."""
        with self.engine.begin() as connection:
            return ledger.heartbeat(
                connection, self.release_id, epoch=self.epoch, lease_seconds=self.seconds
            )

    def require(self, session: Session) -> None:
        """Raise LeaseLost if the epoch has moved on."""
        if session.scalar(_EPOCH, {"id": self.release_id}) != self.epoch:
            raise LeaseLost

    def let_go(self, session: Session) -> bool:
        """Let the lease expire at once."""
        return ledger.heartbeat(
            session, self.release_id, epoch=self.epoch, lease_seconds=_AT_ONCE_SECONDS
        )

    def end(self, session: Session) -> None:
        """Close the reservation: the unspent budget is returned."""
        try:
            ledger.finish(session, self.release_id, epoch=self.epoch)
        except StaleLease as error:
            raise LeaseLost from error


@dataclass(frozen=True)
class DatasetLease:
    """The lease on a dataset that is being ingested."""

    engine: Engine
    dataset_id: UUID
    epoch: int
    seconds: float

    def renew(self) -> bool:
        """Keep it, in a transaction of its own."""
        with unit_of_work(self.engine) as work:
            return ingest.renew(
                work.session, self.dataset_id, epoch=self.epoch, lease_seconds=self.seconds
            )


@dataclass(frozen=True)
class DryRunLease:
    """A lock that lasts as long as its connection."""

    connection: Connection

    @classmethod
    @contextmanager
    def claimed(cls, engine: Engine, release_id: UUID) -> Iterator[Self | None]:
        """The lock, or None if another worker has it."""
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            try:
                is_ours = connection.scalar(_TRY_LOCK, {"key": _lock_key(release_id)})
                yield cls(connection) if is_ours else None
            finally:
                # Closed for good: back in the pool it would keep the lock.
                connection.invalidate()

    @staticmethod
    def is_held(session: Session, release_id: UUID) -> bool:
        """Whether a worker holds the lock at this moment."""
        high, low = divmod(_lock_key(release_id) % 2**64, 2**32)
        return bool(session.scalar(_LOCKED, {"high": high, "low": low}))

    def renew(self) -> bool:
        """Whether the connection is still open."""
        try:
            self.connection.execute(text("SELECT 1"))
        except OUTAGES:
            return False
        return True

    def require(self, session: Session) -> None:
        """Do nothing: two dry runs at once would do no harm."""

    def let_go(self, session: Session) -> bool:
        """The lock goes with its connection."""
        return True

    def end(self, session: Session) -> None:
        """The lock goes with its connection."""


class Ticker:
    """Calls an action at regular intervals, in a thread of its own, until it returns False.

    It continues after an outage or a lack of memory: a process that cannot reach the database
    cannot commit anything either.
    """

    def __init__(
        self, action: Callable[[], bool], *, seconds: float, log: FilteringBoundLogger
    ) -> None:
        self._action = action
        self._seconds = seconds
        self._log = log
        self._leaving = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def has_ended(self) -> bool:
        """Whether the action returned False."""
        return self._ended.is_set()

    def __enter__(self) -> Self:
        """Start ticking."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop ticking."""
        self._leaving.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._leaving.wait(self._seconds):
            try:
                if self._action():
                    continue
            except _WAITED_OUT as error:
                self._log.warning("beat_failed", error_type=type(error).__name__)
                continue
            except Exception as error:
                self._log.error("beat_failed", error_type=type(error).__name__)
            self._ended.set()
            return


@contextmanager
def kept(
    renew: Callable[[], bool], *, seconds: float, log: FilteringBoundLogger
) -> Iterator[Callable[[], None]]:
    """Renew a lease while the block runs; yields a check that raises LeaseLost once it is lost."""
    with Ticker(renew, seconds=seconds / BEATS_PER_LEASE, log=log) as ticker:

        def check() -> None:
            if ticker.has_ended:
                raise LeaseLost

        yield check


def _lock_key(release_id: UUID) -> int:
    digest = hashlib.sha256(b"scrim-dry-run\n" + release_id.bytes).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
