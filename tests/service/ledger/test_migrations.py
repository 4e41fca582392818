"""Migrations go up, down and up again, and never delete spending."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import inspect, text

from service.data.db import migrate
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


BEFORE_TURNS = "0007"
ASK_FOR_A_RELEASE = """
    INSERT INTO api_key (id, name, prefix, secret_sha256, scopes)
    VALUES (:key, 'curator', 'scrim_', sha256('secret'), '{curator}');
    INSERT INTO population (id, name, unit, relation, cap, delta)
    VALUES (:population, 'people', 'row', 'add_remove', '{"rho": 1}', 1e-9);
    INSERT INTO dataset (id, name, population_id, visibility, schema, wrapped_key)
    VALUES (:dataset, 'table', :population, 'private', '{}', '');
    INSERT INTO release (id, dataset_id, population_id, spec, spec_hash, units, state, started_at)
    VALUES (:release, :dataset, :population, '{}', sha256('spec'), 1, 'running', '2026-01-02');
    INSERT INTO idempotency (key_id, method_path, key, body_sha256, status, resource_id)
    VALUES (:key, 'POST /v1/releases', 'once', sha256('body'), 202, :release)
"""


def test_releases_learn_which_key_asked_for_them(fresh: Ledger) -> None:
    migrate(fresh.owner_url, target=BEFORE_TURNS)
    names = {name: uuid4() for name in ("key", "dataset", "release")}
    names["population"] = fresh.open_account(10)
    with fresh.owner.begin() as connection:
        for statement in ASK_FOR_A_RELEASE.split(";"):
            connection.execute(text(statement), names)
    migrate(fresh.owner_url)
    with fresh.owner.connect() as connection:
        (release,) = connection.execute(text("SELECT key_id, turn_at, started_at FROM release"))
    assert release.key_id == names["key"]
    assert release.turn_at == release.started_at
    migrate(fresh.owner_url, target=BEFORE_TURNS)


BEFORE_COLUMNS = "0009"
ASK_BEFORE_COLUMNS = """
    INSERT INTO api_key (id, name, prefix, secret_sha256, scopes)
    VALUES (:key, 'curator', 'scrim_', sha256('secret'), '{curator}');
    INSERT INTO population (id, name, unit, relation, cap, delta)
    VALUES (:population, 'people', 'row', 'add_remove', '{"rho": 1}', 1e-9);
    INSERT INTO dataset (id, name, population_id, visibility, schema, wrapped_key)
    VALUES (:dataset, 'table', :population, 'private', CAST(:schema AS jsonb), '');
    INSERT INTO release (id, dataset_id, population_id, key_id, spec, spec_hash, units)
    VALUES (:release, :dataset, :population, :key, CAST(:spec AS jsonb), sha256('spec'), 1)
"""
NAMED = [{"name": "pid", "type": "identifier"}, {"name": "a", "type": "real"}]
LINKED = {
    "groups": {"key": "hid", "columns": [{"name": "hid", "type": "integer"}, *NAMED[1:]]},
    "individuals": {"group_key": "home", "columns": [*NAMED[:1], {"name": "b", "type": "real"}]},
}


@pytest.mark.parametrize(
    ("schema", "spec", "columns"),
    [
        ({"columns": [*NAMED, {"name": "b", "type": "real"}]}, {}, ["a", "b"]),
        (LINKED, {}, ["a", "b"]),
        (LINKED, {"table": "groups"}, ["a"]),
        (LINKED, {"table": "individuals"}, ["b"]),
    ],
)
def test_earlier_releases_contain_all_columns(
    fresh: Ledger, schema: dict[str, Any], spec: dict[str, Any], columns: list[str]
) -> None:
    migrate(fresh.owner_url, target=BEFORE_COLUMNS)
    values: dict[str, Any] = {name: uuid4() for name in ("key", "dataset", "release")}
    values["population"] = fresh.open_account(10)
    values |= {"schema": json.dumps(schema), "spec": json.dumps(spec)}
    with fresh.owner.begin() as connection:
        for statement in ASK_BEFORE_COLUMNS.split(";"):
            connection.execute(text(statement), values)
    migrate(fresh.owner_url)
    with fresh.owner.connect() as connection:
        assert connection.scalar(text("SELECT columns FROM release")) == columns
    migrate(fresh.owner_url, target=BEFORE_COLUMNS)


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
    program = "import sys; from service.data.db import migrate; migrate(sys.argv[1])"
    processes = [
        subprocess.Popen([sys.executable, "-c", program, address], cwd=ROOT) for _ in range(3)
    ]
    assert [process.wait(timeout=PATIENCE) for process in processes] == [0, 0, 0]
    assert tables(fresh) == TABLES


def test_application_cannot_migrate(fresh: Ledger) -> None:
    with fresh.app.connect() as connection:
        assert not connection.scalar(text("SELECT has_schema_privilege('ledger', 'CREATE')"))
