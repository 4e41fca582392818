"""The anchor refuses databases that are older than, or different from, what was anchored."""

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from service.data.ledger.anchor import (
    ANCHOR_LOCK,
    advance_anchor,
    check_anchor,
    read_heads,
    seal,
    unseal,
)
from service.data.ledger.anchor_store import Anchored, AnchorStore, open_anchor_store
from service.data.ledger.errors import (
    AnchorForged,
    AnchorMissing,
    AnchorMoved,
    AnchorUnreachable,
    DatabaseBehind,
)
from service.embedded.postgres import PostgresServer
from tests.s3 import create_bucket, running_s3, s3_settings

from .support import Ledger, at_once

KEY = Ed25519PrivateKey.generate()
PUBLIC = KEY.public_key()


@pytest.fixture
def fresh(postgres_server: PostgresServer) -> Iterator[Ledger]:
    """A database per test: the anchor is about all of its accounts."""
    ledger = Ledger(postgres_server.url)
    yield ledger
    ledger.drop()


@pytest.fixture(scope="module")
def s3_endpoint() -> Iterator[str]:
    with running_s3() as endpoint:
        yield endpoint


@pytest.fixture(params=["file", "s3"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AnchorStore:
    """The anchor in a file and as an object: both must pass the same tests."""
    if request.param == "file":
        return file_store(tmp_path)
    endpoint = request.getfixturevalue("s3_endpoint")
    for name, value in s3_settings(endpoint).items():
        monkeypatch.setenv(name, value)
    return open_anchor_store(f"s3://{create_bucket(endpoint)}/some/anchor.json")


def file_store(folder: Path) -> AnchorStore:
    return open_anchor_store((folder / "anchor.json").as_uri())


def anchored_heads(store: AnchorStore) -> Any:
    anchored = store.read()
    assert anchored is not None
    return unseal(anchored.document, PUBLIC)


def test_database_may_be_ahead(fresh: Ledger, store: AnchorStore) -> None:
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
        assert anchored_heads(store) == read_heads(connection)


def test_old_backup_is_refused(fresh: Ledger, store: AnchorStore) -> None:
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
    fresh.check()  # consistent in itself: only the anchor detects it
    with pytest.raises(DatabaseBehind):
        check_anchor(fresh.app, store, key=PUBLIC)
    # It does not become acceptable by new entries, or by anchoring it.
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
    fresh: Ledger, store: AnchorStore, edit: str
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
    fresh: Ledger, store: AnchorStore
) -> None:
    fresh.open_account(1000)
    with pytest.raises(AnchorMissing):
        check_anchor(fresh.app, store, key=PUBLIC)
    with pytest.raises(AnchorMissing):
        advance_anchor(fresh.app, store, key=KEY)


def test_forged_anchor_is_refused(fresh: Ledger, store: AnchorStore) -> None:
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
        store.replace(store.read(), forgery)
        with pytest.raises(AnchorForged):
            check_anchor(fresh.app, store, key=PUBLIC)


def test_uncommitted_changes_are_not_anchored(fresh: Ledger, store: AnchorStore) -> None:
    advance_anchor(fresh.app, store, key=KEY)
    population = fresh.open_account(1000)
    with fresh.app.connect() as connection:
        connection.execute(
            text("SELECT ledger.set_cap(:population, 5)"), {"population": population}
        )
        advance_anchor(fresh.app, store, key=KEY)
    check_anchor(fresh.app, store, key=PUBLIC)


def test_anchor_never_goes_back(fresh: Ledger, store: AnchorStore) -> None:
    """With concurrent writers of the anchor and the ledger, the last anchor is not behind."""
    advance_anchor(fresh.app, store, key=KEY)
    population = fresh.open_account(10**6)

    def spend_and_anchor() -> int:
        fresh.reserve(population, 10)
        advance_anchor(fresh.app, store, key=KEY)
        return 1

    assert at_once(*[partial(spend_and_anchor)] * 8) == [1] * 8
    with fresh.app.connect() as connection:
        assert anchored_heads(store) == read_heads(connection)


def test_a_writer_that_lost_its_lock_puts_no_older_anchor_back(
    fresh: Ledger, store: AnchorStore
) -> None:
    """Its connection dies between reading and writing; meanwhile another one anchors more."""
    advance_anchor(fresh.app, store, key=KEY)
    population = fresh.open_account(1000)

    class Late:
        """A store whose writer is delayed."""

        def read(self) -> Anchored | None:
            return store.read()

        def replace(self, known: Anchored | None, document: bytes) -> None:
            end_lock_holders(fresh)
            fresh.reserve(population, 10)
            advance_anchor(fresh.app, store, key=KEY)
            with pytest.raises(AnchorMoved):
                store.replace(known, document)

    with pytest.raises(OperationalError):
        advance_anchor(fresh.app, Late(), key=KEY)
    with fresh.app.connect() as connection:
        assert anchored_heads(store) == read_heads(connection)


def end_lock_holders(ledger: Ledger) -> None:
    """Disconnect the writer of the anchor from the database."""
    with ledger.owner.begin() as connection:
        ended = connection.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_locks"
                " WHERE locktype = 'advisory' AND objid = :key"
            ),
            {"key": ANCHOR_LOCK},
        )
        assert ended.scalars().all() == [True]


def test_only_the_known_document_is_replaced(store: AnchorStore) -> None:
    assert store.read() is None
    store.replace(None, b"first")
    with pytest.raises(AnchorMoved):
        store.replace(None, b"another first")
    first = store.read()
    assert first is not None and first.document == b"first"
    store.replace(first, b"second")
    with pytest.raises(AnchorMoved):
        store.replace(first, b"another second")
    second = store.read()
    assert second is not None and second.document == b"second"


def test_a_failing_object_store_is_unreachable(
    s3_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_settings(s3_endpoint).items():
        monkeypatch.setenv(name, value)
    nowhere = open_anchor_store("s3://no-such-bucket/anchor.json")
    with pytest.raises(AnchorUnreachable):
        nowhere.replace(None, b"first")


def test_failed_write_leaves_the_old_anchor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = file_store(tmp_path)
    store.replace(None, b"old")
    old = store.read()

    def fail(_: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        store.replace(old, b"new")
    assert store.read() == old
    assert {path.name for path in tmp_path.iterdir()} == {"anchor.json", ".anchor.json.lock"}
