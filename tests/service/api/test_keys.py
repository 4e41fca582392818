"""API keys: shown once, hashed, expiring, revocable, limited."""

import hashlib
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import text

from service.data.db import open_engine
from service.embedded import ValkeyServer
from tests.databases import create_database

from .support import Api, problem, serving, settings_for


def test_a_key_works_until_it_is_revoked(api: Api) -> None:
    admin = api.role("admin")
    made = admin.post("/v1/keys", json={"name": "laptop", "scopes": ["curator", "curator"]})
    assert made.status_code == 201
    body = made.json()
    assert body["key"].startswith("scrim_") and body["key"].startswith(body["prefix"])
    assert body["scopes"] == ["curator"]
    with api.client(body["key"]) as client:
        assert client.get("/v1/datasets").status_code == 200
        assert admin.delete(f"/v1/keys/{body['id']}").status_code == 204
        assert admin.delete(f"/v1/keys/{body['id']}").status_code == 204
        problem(client.get("/v1/datasets"), 401, "unauthorized")


def test_the_secret_is_nowhere_but_in_the_answer(api: Api) -> None:
    admin = api.role("admin")
    made = admin.post("/v1/keys", json={"name": "secret", "scopes": ["analyst"]}).json()
    listed = next(
        item for item in admin.get("/v1/keys").json()["items"] if item["id"] == made["id"]
    )
    assert set(listed) == set(made) - {"key"}
    with api.session() as session:
        row = session.execute(
            text("SELECT api_key::text, secret_sha256 FROM api_key WHERE id = :id"),
            {"id": made["id"]},
        ).one()
    assert made["key"] not in row[0]
    assert row[1] == hashlib.sha256(made["key"].encode()).digest()
    assert made["key"] not in api.log.getvalue()


def test_an_expired_key_is_refused(api: Api, owner_url: Any) -> None:
    admin = api.role("admin")
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    body = {"name": "short", "scopes": ["analyst"], "expires_at": later}
    made = admin.post("/v1/keys", json=body).json()
    with api.client(made["key"]) as client:
        assert client.get("/v1/mechanisms").status_code == 200
        owner = open_engine(owner_url)
        with owner.begin() as connection:
            connection.execute(
                text("UPDATE api_key SET expires_at = now() WHERE id = :id"), {"id": made["id"]}
            )
        owner.dispose()
        problem(client.get("/v1/mechanisms"), 401, "unauthorized")


def test_keys_that_make_no_sense_are_refused(api: Api) -> None:
    admin = api.role("admin")
    past = "2020-01-01T00:00:00Z"
    for body in (
        {"name": "x", "scopes": []},
        {"name": "x", "scopes": ["root"]},
        {"name": "", "scopes": ["admin"]},
        {"name": "x", "scopes": ["admin"], "expires_at": past},
        {"name": "x", "scopes": ["admin"], "expires_at": "2090-01-01T00:00:00"},
        {"name": "x", "scopes": ["admin"], "unknown": 1},
    ):
        problem(admin.post("/v1/keys", json=body), 422, "invalid")
    missing = admin.delete("/v1/keys/00000000-0000-0000-0000-000000000000")
    problem(missing, 404, "not-found")


def test_last_admin_key_and_rate_limit(postgres_server: Any, valkey_server: ValkeyServer) -> None:
    with tempfile.TemporaryDirectory(prefix="scrim-test-") as folder:
        settings = settings_for(
            create_database(postgres_server.url),
            valkey_server.url,
            Path(folder),
            rate_limit=0.01,
            rate_burst=5,
        )
        with serving(settings, Path(folder)) as small:
            admin = small.role("admin")
            only = admin.get("/v1/keys").json()["items"][0]["id"]
            problem(admin.delete(f"/v1/keys/{only}"), 409, "last-admin-key")
            assert admin.post("/v1/keys", json={"name": "2", "scopes": ["admin"]}).is_success
            assert [admin.get("/v1/keys").status_code for _ in range(3)] == [200, 200, 429]
            limited = admin.get("/v1/keys")
            problem(limited, 429, "rate-limited")
            assert 0 < int(limited.headers["retry-after"]) <= 100
            # Another key has a bucket of its own, and health is not counted.
            assert small.role("curator").get("/v1/mechanisms").status_code == 200
            assert admin.get("/healthz").status_code == 200
