"""Databases for tests: one per server is migrated, and then copied."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from uuid import UUID

from sqlalchemy import URL, Engine, make_url, text

from service.data.db import migrate, open_engine


def create_database(server_url: str) -> URL:
    """A fresh, migrated database; returns the owner's address."""
    name = f"test_{uuid.uuid4().hex}"
    on_server(server_url, f"CREATE DATABASE {name} TEMPLATE {_migrated(server_url)}")
    return make_url(server_url).set(database=name)


@cache
def _migrated(server_url: str) -> str:
    """A migrated database that is only used as a template."""
    name = f"migrated_{uuid.uuid4().hex}"
    on_server(server_url, f"CREATE DATABASE {name}")
    migrate(make_url(server_url).set(database=name))
    return name


def on_server(server_url: str, statement: str) -> None:
    """Run a statement about whole databases."""
    engine = open_engine(make_url(server_url).set(database="postgres"))
    try:
        with engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT").execute(text(statement))
    finally:
        engine.dispose()


@contextmanager
def ledger_in_the_past(owner: Engine, population: UUID, by: timedelta) -> Iterator[None]:
    """Backdate the present entries of a ledger, as a superuser, while the block runs.

    Its chain does not verify during that time, because hashes cover the dates.
    """
    move = text(
        "UPDATE ledger.audit SET at = at - :by WHERE account = :population AND seq <= :last"
    )
    with owner.connect() as connection:
        count = text("SELECT max(seq) FROM ledger.audit WHERE account = :population")
        last = connection.scalar(count, {"population": population})

    def shift(by: timedelta) -> None:
        with owner.begin() as connection:
            connection.execute(text("SET LOCAL session_replication_role = replica"))
            connection.execute(move, {"by": by, "population": population, "last": last})

    shift(by)
    try:
        yield
    finally:
        shift(-by)
