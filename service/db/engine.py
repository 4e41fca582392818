"""Engines on Postgres through psycopg."""

from sqlalchemy import URL, Engine, create_engine, make_url

# A client that vanished inside a transaction may hold an account's lock; the server ends it.
_IDLE_IN_TRANSACTION = "-c idle_in_transaction_session_timeout=60s"


def open_engine(url: str | URL, *, pool_size: int = 5) -> Engine:
    """An engine on `url`, whatever driver it names. Errors never repeat statement parameters."""
    return create_engine(
        make_url(url).set(drivername="postgresql+psycopg"),
        pool_size=pool_size,
        pool_pre_ping=True,
        hide_parameters=True,
        connect_args={"options": _IDLE_IN_TRANSACTION},
    )
