"""One running service for the session; each test creates its own populations."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.embedded import PostgresServer, ValkeyServer
from tests.databases import create_database

from .support import Api, serving, settings_for


@pytest.fixture(scope="session")
def owner_url(postgres_server: PostgresServer) -> Any:
    """The address of the service's database, as its owner."""
    return create_database(postgres_server.url)


@pytest.fixture(scope="session")
def api(owner_url: Any, valkey_server: ValkeyServer) -> Iterator[Api]:
    """The service with generous limits."""
    with tempfile.TemporaryDirectory(prefix="scrim-test-") as folder:
        settings = settings_for(owner_url, valkey_server.url, Path(folder))
        with serving(settings, Path(folder)) as running:
            yield running
