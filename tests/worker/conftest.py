"""One installation for tests that call the workers' code, another for tests with real workers."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from service.embedded import PostgresServer, ValkeyServer
from tests.worker.support import Stack, running_stack
from worker.ingest import ingest_dataset


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """A folder for everything, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="scrim-worker-") as path:
        yield Path(path)


@pytest.fixture(scope="session")
def postgres_url(folder: Path) -> Iterator[str]:
    """A running Postgres, without fsync."""
    with PostgresServer(folder / "servers", durable=False) as server:
        yield server.url


@pytest.fixture(scope="session")
def valkey_url(folder: Path) -> Iterator[str]:
    """A running Valkey with many databases."""
    with ValkeyServer(folder / "servers", durable=False) as server:
        yield server.url


@pytest.fixture(scope="session")
def stack_of_session(postgres_url: str, valkey_url: str, folder: Path) -> Iterator[Stack]:
    """A service without workers: tests call the workers' code themselves."""
    place = folder / "quiet"
    place.mkdir()
    with running_stack(postgres_url, valkey_url, place) as stack:
        yield stack
        stack.check()


@pytest.fixture
def stack(stack_of_session: Stack) -> Iterator[Stack]:
    """The installation without workers; after the test, its ledger must be consistent.

    The chains of earlier populations are verified at the end of the session: after each test, that would
    take longer than the tests.
    """
    earlier = stack_of_session.populations()
    yield stack_of_session
    stack_of_session.check(apart_from=earlier)


@pytest.fixture
def population(stack: Stack) -> UUID:
    """A new population."""
    return stack.population()


@pytest.fixture
def dataset(stack: Stack, population: UUID) -> UUID:
    """An ingested dataset about them."""
    dataset = stack.uploaded(population)
    ingest_dataset(stack.context, dataset)
    return dataset
