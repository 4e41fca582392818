"""Migrations go up, down and up again, and never throw spending away."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import inspect, text

from service.db import migrate
from service.embedded.postgres import PostgresServer
from tests.patience import PATIENCE

from .support import Ledger

ROOT = Path(__file__).resolve().parents[3]
TABLES = ["account", "audit", "operation", "outcome", "reservation"]


@pytest.fixture
def fresh(postgres_server: PostgresServer) -> Iterator[Ledger]:
    ledger = Ledger(postgres_server.url)
    yield ledger
    ledger.drop()


def tables(ledger: Ledger) -> list[str]:
    return sorted(inspect(ledger.owner).get_table_names(schema="ledger"))


def test_up_down_up(fresh: Ledger) -> None:
    assert tables(fresh) == TABLES
    migrate(fresh.owner_url, target="base")
    assert tables(fresh) == []
    migrate(fresh.owner_url)
    migrate(fresh.owner_url)
    assert tables(fresh) == TABLES
    fresh.reserve(fresh.open_account(10), 1)
    fresh.check()


def test_down_is_refused_while_there_are_accounts(fresh: Ledger) -> None:
    fresh.open_account(10)
    with pytest.raises(RuntimeError, match="give their budget back"):
        migrate(fresh.owner_url, target="base")
    assert tables(fresh) == TABLES
    fresh.check()


def test_command_line_takes_the_address_from_the_environment(
    fresh: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = fresh.owner_url.render_as_string(hide_password=False)
    monkeypatch.setenv("SCRIM_DATABASE_URL", address)
    config = Config(ROOT / "alembic.ini")
    command.downgrade(config, "base")
    assert tables(fresh) == []
    command.upgrade(config, "head")
    assert tables(fresh) == TABLES


def test_several_processes_migrate_at_once(fresh: Ledger) -> None:
    migrate(fresh.owner_url, target="base")
    address = fresh.owner_url.render_as_string(hide_password=False)
    program = "import sys; from service.db import migrate; migrate(sys.argv[1])"
    processes = [
        subprocess.Popen([sys.executable, "-c", program, address], cwd=ROOT) for _ in range(3)
    ]
    assert [process.wait(timeout=PATIENCE) for process in processes] == [0, 0, 0]
    assert tables(fresh) == TABLES


def test_application_cannot_migrate(fresh: Ledger) -> None:
    with fresh.app.connect() as connection:
        assert not connection.scalar(text("SELECT has_schema_privilege('ledger', 'CREATE')"))
