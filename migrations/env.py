"""Alembic's entry: migrates the given connection, or the database of SCRIM_DATABASE_URL."""

import os

from alembic import context
from sqlalchemy import Connection, text

from service.data.db.engine import open_engine

# An arbitrary fixed number; every process that migrates takes this lock.
MIGRATION_LOCK = 0x5C21_3A11


def _migrate(connection: Connection) -> None:
    context.configure(connection=connection)
    with context.begin_transaction():
        # Held until the commit. Taken before Alembic reads the version, so of several services
        # that start together one migrates and the others find nothing left to do.
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
        context.run_migrations()


def _main() -> None:
    if context.is_offline_mode():
        raise SystemExit("offline migrations are not supported: they cannot take the lock")
    given = context.config.attributes.get("connection")
    if given is not None:
        _migrate(given)
        return
    engine = open_engine(os.environ["SCRIM_DATABASE_URL"])
    try:
        with engine.connect() as connection:
            _migrate(connection)
    finally:
        engine.dispose()


_main()
