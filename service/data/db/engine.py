"""Engines on Postgres through psycopg."""

import select
from typing import Any

from pydantic_core import from_json
from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.exc import DisconnectionError

# A client that disappears inside a transaction may hold an account's lock; the server ends it.
_IDLE_IN_TRANSACTION = "-c idle_in_transaction_session_timeout=60s"


def open_engine(url: str | URL, *, pool_size: int = 5) -> Engine:
    """Create an engine for `url` with any driver. Errors never repeat statement parameters."""
    engine = create_engine(
        make_url(url).set(drivername="postgresql+psycopg"),
        pool_size=pool_size,
        # Reuse the connection used last: its statements are prepared and cached.
        pool_use_lifo=True,
        hide_parameters=True,
        # A page of releases holds a hundred documents; json.loads takes several times as long.
        json_deserializer=from_json,
        connect_args={"options": _IDLE_IN_TRANSACTION},
    )
    event.listen(engine, "checkout", _refuse_closed)
    return engine


def _refuse_closed(connection: Any, _record: object, _proxy: object) -> None:
    """Replace a connection that the server has closed; the check costs one system call.

    Postgres sends nothing on an idle connection, except when it closes it.
    """
    poller = select.poll()
    poller.register(connection.fileno(), select.POLLIN)
    if poller.poll(0):
        raise DisconnectionError
