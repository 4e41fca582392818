"""Databases for tests: one is migrated for each server, and copied from then on."""

import uuid
from functools import cache

from sqlalchemy import URL, make_url, text

from service.db import migrate, open_engine


def create_database(server_url: str) -> URL:
    """A fresh, migrated database; returns the owner's address."""
    name = f"test_{uuid.uuid4().hex}"
    on_server(server_url, f"CREATE DATABASE {name} TEMPLATE {_migrated(server_url)}")
    return make_url(server_url).set(database=name)


@cache
def _migrated(server_url: str) -> str:
    """A database that is never used but for copies."""
    name = f"migrated_{uuid.uuid4().hex}"
    on_server(server_url, f"CREATE DATABASE {name}")
    migrate(make_url(server_url).set(database=name))
    return name


def on_server(server_url: str, statement: str) -> None:
    """Carry out a statement about whole databases."""
    engine = open_engine(make_url(server_url).set(database="postgres"))
    try:
        with engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT").execute(text(statement))
    finally:
        engine.dispose()
