"""Resources that the endpoints share: opened once from the settings, closed when the service stops."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace

import redis
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from redis.backoff import NoBackoff
from redis.retry import Retry
from sqlalchemy import Engine
from structlog.typing import FilteringBoundLogger

from service.data.config import Settings
from service.data.content import CheckedContent
from service.data.db import open_engine
from service.data.ledger.anchor import advance_anchor, check_anchor
from service.data.ledger.anchor_store import AnchorStore, open_anchor_store
from service.data.limiter import Limiter
from service.data.storage import Storage, open_storage
from service.data.task_queue import TaskQueue
from service.data.work import UnitOfWork, unit_of_work

_BROKER_SECONDS = 2.0
"""Longest wait for the broker, on which every request depends for its rate limit."""


@dataclass(frozen=True)
class Context:
    """Connections and keys of a running service."""

    settings: Settings
    log: FilteringBoundLogger
    engine: Engine
    storage: Storage
    content: CheckedContent
    broker: "redis.Redis"
    task_queue: TaskQueue
    limiter: Limiter
    signing_key: Ed25519PrivateKey
    anchor_store: AnchorStore
    stopping: threading.Event = field(default_factory=threading.Event)
    """Set when the service is asked to stop, so that endless responses end."""
    work: UnitOfWork | None = None
    """The transaction that all steps belong to; None: every step begins its own."""

    def transaction(self) -> AbstractContextManager[UnitOfWork]:
        """One transaction on the database."""
        return unit_of_work(self.engine) if self.work is None else nullcontext(self.work)

    def within(self, work: UnitOfWork) -> "Context":
        """The same context inside a transaction that is already open."""
        return replace(self, work=work)

    def check_anchor(self) -> None:
        """Refuse a database that is older than what was anchored."""
        check_anchor(self.engine, self.anchor_store, key=self.signing_key.public_key())

    def advance_anchor(self) -> None:
        """Anchor what is committed now."""
        advance_anchor(self.engine, self.anchor_store, key=self.signing_key)


@contextmanager
def open_context(settings: Settings, log: FilteringBoundLogger) -> Iterator[Context]:
    """Open everything that the settings name."""
    broker_url = str(settings.broker_url)
    broker = redis.Redis.from_url(
        broker_url,
        socket_timeout=_BROKER_SECONDS,
        socket_connect_timeout=_BROKER_SECONDS,
        retry=Retry(NoBackoff(), 1),
    )
    engine = open_engine(str(settings.database_url), pool_size=settings.database_connections)
    task_queue = TaskQueue(broker_url, broker, log)
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    storage = open_storage(str(settings.storage_url))
    try:
        yield Context(
            settings=settings,
            log=log,
            engine=engine,
            storage=storage,
            content=CheckedContent(storage),
            broker=broker,
            task_queue=task_queue,
            limiter=Limiter(
                broker,
                rate=settings.rate_limit,
                burst=settings.rate_burst,
                most_at_once=settings.max_requests_per_key,
            ),
            signing_key=Ed25519PrivateKey.from_private_bytes(settings.signing_key_bytes),
            anchor_store=open_anchor_store(settings.anchor_location),
        )
    finally:
        task_queue.close()
        broker.close()
        engine.dispose()
