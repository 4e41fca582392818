"""One database per test module, with real commits: rollbacks would hide races."""

from collections.abc import Iterator

import pytest

from service.embedded.postgres import PostgresServer

from .support import Ledger


@pytest.fixture(scope="module")
def ledger_of_module(postgres_server: PostgresServer) -> Iterator[Ledger]:
    """A fresh, migrated database."""
    ledger = Ledger(postgres_server.url)
    yield ledger
    ledger.drop()


@pytest.fixture
def ledger(ledger_of_module: Ledger) -> Iterator[Ledger]:
    """The module's database; after the test, the ledger must be consistent."""
    yield ledger_of_module
    ledger_of_module.check()
