"""The anchor refuses databases that are older than, or different from, what was anchored."""

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import text

from service.embedded.postgres import PostgresServer
from service.ledger.anchor import (
    FileAnchorStore,
    advance_anchor,
    check_anchor,
    read_heads,
    seal,
    unseal,
)
from service.ledger.errors import AnchorForged, AnchorMissing, DatabaseBehind

from .support import Ledger, at_once

KEY = Ed25519PrivateKey.generate()
PUBLIC = KEY.public_key()


@pytest.fixture
def fresh(postgres_server: PostgresServer) -> Iterator[Ledger]:
    """A database per test: the anchor is about all of its accounts."""
    ledger = Ledger(postgres_server.url)
    yield ledger
    ledger.drop()


@pytest.fixture
def store(tmp_path: Path) -> FileAnchorStore:
    return FileAnchorStore(tmp_path / "anchor.json")


def test_database_may_be_ahead(fresh: Ledger, store: FileAnchorStore) -> None:
    check_anchor(fresh.app, store, key=PUBLIC)
    advance_anchor(fresh.app, store, key=KEY)
    check_anchor(fresh.app, store, key=PUBLIC)
    first = fresh.open_account(1000)
    check_anchor(fresh.app, store, key=PUBLIC)
    advance_anchor(fresh.app, store, key=KEY)
    fresh.reserve(first, 10)
    fresh.open_account(1000)
    check_anchor(fresh.app, store, key=PUBLIC)
    advance_anchor(fresh.app, store, key=KEY)
    with fresh.app.connect() as connection:
        assert unseal(store.read() or b"", PUBLIC) == read_heads(connection)


def test_old_backup_is_refused(fresh: Ledger, store: FileAnchorStore) -> None:
    advance_anchor(fresh.app, store, key=KEY)
    population = fresh.open_account(1000)
    advance_anchor(fresh.app, store, key=KEY)
    backup = fresh.back_up()
    fresh.attach()
    fresh.reserve(population, 10)
    advance_anchor(fresh.app, store, key=KEY)
    newest = store.read()

    fresh.drop()
    fresh.database = backup
    fresh.attach()
    fresh.check()  # sound in itself: nothing but the anchor can tell
    with pytest.raises(DatabaseBehind):
        check_anchor(fresh.app, store, key=PUBLIC)
    # Nor does it become acceptable by going on, or by anchoring it.
    fresh.reserve(population, 20)
    with pytest.raises(DatabaseBehind):
        check_anchor(fresh.app, store, key=PUBLIC)
    with pytest.raises(DatabaseBehind):
        advance_anchor(fresh.app, store, key=KEY)
    assert store.read() == newest


@pytest.mark.parametrize(
    "edit",
    [
        "DELETE FROM ledger.audit WHERE seq = 2",
        "UPDATE ledger.audit SET hash = sha256('') WHERE seq = 2",
        "DELETE FROM ledger.audit; DELETE FROM ledger.reservation; DELETE FROM ledger.account",
    ],
)
def test_shorter_changed_or_missing_account_is_refused(
    fresh: Ledger, store: FileAnchorStore, edit: str
) -> None:
    advance_anchor(fresh.app, store, key=KEY)
    fresh.reserve(fresh.open_account(1000), 10)
    fresh.reserve(fresh.open_account(1000), 10)
    advance_anchor(fresh.app, store, key=KEY)
    with fresh.tampering() as connection:
        connection.execute(text(edit))
    with pytest.raises(DatabaseBehind):
        check_anchor(fresh.app, store, key=PUBLIC)


def test_missing_anchor_is_refused_once_there_are_accounts(
    fresh: Ledger, store: FileAnchorStore
) -> None:
    fresh.open_account(1000)
    with pytest.raises(AnchorMissing):
        check_anchor(fresh.app, store, key=PUBLIC)
    with pytest.raises(AnchorMissing):
        advance_anchor(fresh.app, store, key=KEY)


def test_forged_anchor_is_refused(fresh: Ledger, store: FileAnchorStore) -> None:
    advance_anchor(fresh.app, store, key=KEY)
    fresh.open_account(1000)
    with fresh.app.connect() as connection:
        heads = read_heads(connection)
    honest = json.loads(seal(heads, KEY))
    forgeries = [
        seal(heads, Ed25519PrivateKey.generate()),
        json.dumps(honest | {"heads": []}).encode(),
        json.dumps(honest | {"signature": "00" * 64}).encode(),
        json.dumps(honest | {"heads": [["nobody", 1, "00"]]}).encode(),
        json.dumps([honest]).encode(),
        b"{}",
        b"",
        b"\xff",
    ]
    for forgery in forgeries:
        store.write(forgery)
        with pytest.raises(AnchorForged):
            check_anchor(fresh.app, store, key=PUBLIC)


def test_uncommitted_changes_are_not_anchored(fresh: Ledger, store: FileAnchorStore) -> None:
    advance_anchor(fresh.app, store, key=KEY)
    population = fresh.open_account(1000)
    with fresh.app.connect() as connection:
        connection.execute(
            text("SELECT ledger.set_cap(:population, 5)"), {"population": population}
        )
        advance_anchor(fresh.app, store, key=KEY)
    check_anchor(fresh.app, store, key=PUBLIC)


def test_anchor_never_goes_back(fresh: Ledger, store: FileAnchorStore) -> None:
    """Writers of the anchor and of the ledger at once: the last anchor is not behind."""
    advance_anchor(fresh.app, store, key=KEY)
    population = fresh.open_account(10**6)

    def spend_and_anchor() -> int:
        fresh.reserve(population, 10)
        advance_anchor(fresh.app, store, key=KEY)
        return 1

    assert at_once(*[partial(spend_and_anchor)] * 8) == [1] * 8
    with fresh.app.connect() as connection:
        assert unseal(store.read() or b"", PUBLIC) == read_heads(connection)


def test_failed_write_leaves_the_old_anchor(
    tmp_path: Path, store: FileAnchorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert store.read() is None
    store.write(b"old")

    def fail(_: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        store.write(b"new")
    assert store.read() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["anchor.json"]
