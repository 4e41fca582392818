"""`scrim up` with external servers."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url, text

from scrim.stack import find_free_port
from service.data.db import APP_ROLE, open_engine
from service.embedded import PostgresServer, ValkeyServer
from tests.e2e.support import run_beside, running, scratch, try_to_start

pytestmark = pytest.mark.e2e

PRINT_ADDRESS = "import os; print(os.environ['SCRIM_DATABASE_URL'])"


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder."""
    with scratch() as path:
        yield path


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """An external database server."""
    with scratch() as path, PostgresServer(path, durable=False) as server:
        yield server


@pytest.fixture(scope="module")
def valkey() -> Iterator[ValkeyServer]:
    """An external broker."""
    with scratch() as path, ValkeyServer(path, durable=False) as server:
        yield server


class TestServersOfOthers:
    def test_they_are_used_instead(
        self, postgres: PostgresServer, valkey: ValkeyServer, folder: Path
    ) -> None:
        objects = folder / "my objects"
        app_url = make_url(postgres.url).set(username=APP_ROLE, password="correct horse")
        settings = {
            "SCRIM_DATABASE_URL": app_url.render_as_string(hide_password=False),
            "SCRIM_MIGRATION_URL": postgres.url,
            "SCRIM_BROKER_URL": valkey.url,
            "SCRIM_STORAGE_URL": objects.as_uri(),
        }
        data_dir = folder / "deep" / "data"
        with running(data_dir, **settings) as up, up.admin() as admin:
            assert list(admin.populations.list()) == []
            assert [key.scopes for key in admin.keys.list()] == [["admin"]]
            admin.populations.create("people", cap={"rho": 1.0}, delta=1e-9)
            names = {path.name for path in up.data_dir.iterdir()}
            assert names.isdisjoint({"postgres", "valkey", "objects", "database.password"})
            assert objects.is_dir()
        del settings["SCRIM_MIGRATION_URL"]
        self.use_as_the_owner(data_dir, settings | {"SCRIM_DATABASE_URL": postgres.url})

    def use_as_the_owner(self, data_dir: Path, settings: dict[str, str]) -> None:
        """Given the owner's address, the service still runs as the application's role."""
        done = run_beside(data_dir, sys.executable, "-c", PRINT_ADDRESS, **settings)
        assert done.returncode == 0, done.stderr
        address = done.stdout.strip()
        assert make_url(address).username == APP_ROLE
        engine = open_engine(address)
        with engine.connect() as connection:
            assert connection.scalars(text("SELECT name FROM population")).all() == ["people"]
        engine.dispose()
        self.refuse_another_folder(data_dir.with_name("other"), settings)

    def refuse_another_folder(self, data_dir: Path, settings: dict[str, str]) -> None:
        """Without the anchor, it cannot be checked whether the accounts are the newest."""
        refused = try_to_start(data_dir, find_free_port(), **settings)
        assert refused.returncode == 1
        assert "there is no anchor" in refused.stderr
