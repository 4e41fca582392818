"""Real servers for the service's tests: one of each per session, thrown away at its end."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.embedded import PostgresServer, ValkeyServer


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """An empty data folder, removed at the end: servers fill many megabytes."""
    with tempfile.TemporaryDirectory(prefix="scrim-test-") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A running Postgres with an empty database `scrim`, without fsync."""
    with (
        tempfile.TemporaryDirectory(prefix="scrim-test-") as folder,
        PostgresServer(Path(folder), durable=False) as server,
    ):
        yield server


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[ValkeyServer]:
    """A running Valkey that writes nothing to disk."""
    with (
        tempfile.TemporaryDirectory(prefix="scrim-test-") as folder,
        ValkeyServer(Path(folder), durable=False) as server,
    ):
        yield server
