"""One running service for the console's tests, and a visitor with all scopes."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.embedded import PostgresServer, ValkeyServer
from service.keys.schemas import SCOPES
from tests.databases import create_database
from tests.service.api.support import Api, serving, settings_for
from tests.service.console.support import Visitor, visitor


@pytest.fixture(scope="session")
def owner_url(postgres_server: PostgresServer) -> Any:
    """The address of the service's database, as its owner."""
    return create_database(postgres_server.url)


@pytest.fixture(scope="session")
def api(owner_url: Any, valkey_server: ValkeyServer) -> Iterator[Api]:
    """The service with generous limits."""
    with tempfile.TemporaryDirectory(prefix="scrim-test-") as folder:
        settings = settings_for(
            owner_url, valkey_server.url, Path(folder), model_timeout_seconds=0.2
        )
        with serving(settings, Path(folder)) as running:
            yield running


@pytest.fixture(scope="session")
def everybody(api: Api) -> Iterator[Visitor]:
    """A visitor who may do everything."""
    with visitor(api, *SCOPES) as visiting:
        yield visiting
