"""Health, metrics, errors and logs: what operators and clients rely on when things go wrong."""

import asyncio
import io
import json
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI
from pydantic import ValidationError
from sqlalchemy import inspect, text

from scrim.spec.release import ReleaseRequest
from service.app import create_app
from service.data.config import Settings
from service.data.db import migrate, open_engine
from service.data.ledger.errors import DatabaseBehind
from service.data.logging import build_logger
from service.data.task_queue import QUEUES
from service.embedded import PostgresServer, ValkeyServer, wait_until
from tests.databases import create_database
from tests.patience import PATIENCE

from .support import Api, problem, random_key, serving, settings_for

ROOT = Path(__file__).resolve().parents[3]
TABLES = {
    "alembic_version", "api_key", "artifact", "console_session", "dataset", "idempotency",
    "master_key_check", "population", "release", "release_event", "saved_schema",
    "upload",
}  # fmt: skip


def test_ready(api: Api) -> None:
    answer = api.all.get("/readyz")
    checks = ["database", "migrations", "ledger", "broker", "storage"]
    assert answer.json() == {"status": "ready", "checks": checks}
    assert api.all.get("/healthz").json() == {"status": "ok"}


def test_without_a_broker_work_goes_on_and_readiness_says_so(
    postgres_server: PostgresServer,
) -> None:
    with tempfile.TemporaryDirectory(prefix="scrim-test-") as folder:
        settings = settings_for(
            create_database(postgres_server.url),
            "redis://127.0.0.1:1/0",
            Path(folder),
            model_timeout_seconds=0.2,
        )
        with serving(settings, Path(folder)) as lonely:
            found = problem(lonely.all.get("/readyz"), 503, "not-ready")
            assert [each["loc"] for each in found["errors"]] == [["broker"]]
            release = lonely.release(lonely.ready_dataset(lonely.population()), publish=True)
            lonely.finish(release)
            answer = lonely.all.post(f"/v1/releases/{release}/samples", json={"rows": 1})
            problem(answer, 503, "not-ready")
            assert lonely.all.get("/metrics").status_code == 200
            log = lonely.log.getvalue()
    for event in ("send_failed", "ask_failed", "rate_limit_unavailable", "check_failed"):
        assert f'"event": "{event}"' in log


def test_no_worker_answers_in_time(
    postgres_server: PostgresServer, valkey_server: ValkeyServer
) -> None:
    with tempfile.TemporaryDirectory(prefix="scrim-test-") as folder:
        settings = settings_for(
            create_database(postgres_server.url),
            valkey_server.url.replace("/0", "/5"),
            Path(folder),
            model_timeout_seconds=0.2,
        )
        with serving(settings, Path(folder)) as idle:
            release = idle.release(idle.ready_dataset(idle.population()), publish=True)
            idle.finish(release)
            answer = idle.all.post(f"/v1/releases/{release}/samples", json={"rows": 1})
            found = problem(answer, 503, "not-ready")
            assert "0.2 seconds" in found["detail"]


def test_an_old_backup_is_not_served(
    postgres_server: PostgresServer, valkey_server: ValkeyServer
) -> None:
    with tempfile.TemporaryDirectory(prefix="scrim-test-") as folder:
        settings = settings_for(
            create_database(postgres_server.url), valkey_server.url, Path(folder)
        )
        with serving(settings, Path(folder)) as running:
            running.population()
        older = settings_for(
            create_database(postgres_server.url),
            valkey_server.url,
            Path(folder),
            signing_key=settings.signing_key,
        )
        app = create_app(older, log=build_logger(io.StringIO()))
        with pytest.raises(DatabaseBehind):
            asyncio.run(_start(app))


async def _start(app: FastAPI) -> None:
    async with app.router.lifespan_context(app):
        pass


def test_stopping_ends_event_streams(
    postgres_server: PostgresServer, valkey_server: ValkeyServer
) -> None:
    with tempfile.TemporaryDirectory(prefix="scrim-test-") as folder:
        settings = settings_for(
            create_database(postgres_server.url), valkey_server.url, Path(folder)
        )
        received: list[str] = []
        with serving(settings, Path(folder)) as running:
            release = running.release(running.ready_dataset(running.population()))
            key, url = running.new_key("curator"), running.url

            def watch() -> None:
                headers = {"Authorization": f"Bearer {key}"}
                path = f"{url}/v1/releases/{release}/events"
                with httpx.stream("GET", path, headers=headers, timeout=PATIENCE) as answer:
                    for line in answer.iter_lines():
                        received.append(line)

            watcher = threading.Thread(target=watch)
            watcher.start()
            wait_until(lambda: len(received) > 0, timeout=PATIENCE, what="the first event")
        watcher.join(timeout=PATIENCE)
        assert not watcher.is_alive()


def test_metrics(api: Api) -> None:
    population = api.population()
    api.release(api.ready_dataset(population))
    api.all.get("/nothing/here")
    text_format = api.role("admin").get("/metrics").text
    assert f'scrim_rho_reserved{{population_id="{population}"}} 0.1' in text_format
    assert f'scrim_rho_spent{{population_id="{population}"}} 0.0' in text_format
    assert re.search(r'scrim_releases\{state="queued"\} \d', text_format)
    for queue in QUEUES:
        assert re.search(rf'scrim_queue_depth\{{queue="{queue}"\}} \d', text_format)
    route = r'route="/v1/datasets/\{dataset_id\}/content",status="202"'
    assert re.search(rf'scrim_requests_total\{{method="PUT",{route}\}} \d', text_format)
    assert 'route="unmatched",status="404"' in text_format


def test_errors_of_the_framework_are_problems_too(api: Api) -> None:
    problem(api.all.get("/nothing"), 404, "not-found")
    problem(api.all.patch("/v1/keys"), 405, "method-not-allowed")
    problem(api.all.post("/v1/keys", content=b"{not json"), 422, "invalid")
    found = problem(api.all.get("/v1/datasets/not-a-uuid"), 422, "invalid")
    message = '"dataset_id" must be a UUID'
    assert found["errors"] == [{"loc": ["path", "dataset_id"], "message": message}]
    assert found["detail"] == message


def test_an_unexpected_error_reveals_nothing(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: Any, **_named: Any) -> None:
        raise RuntimeError("a secret of the database")

    monkeypatch.setattr("service.populations.service.show", broken)
    answer = api.all.get("/v1/populations/00000000-0000-0000-0000-000000000000")
    found = problem(answer, 500, "internal")
    assert "secret" not in answer.text + api.log.getvalue()
    lines = [json.loads(line) for line in api.log.getvalue().splitlines()]
    logged = next(
        line
        for line in lines
        if line["event"] == "unexpected_error" and line["request_id"] == found["request_id"]
    )
    assert logged["error_type"] == "RuntimeError"
    assert "service/populations/endpoints.py" in logged["trace"]


def test_request_ids(api: Api) -> None:
    mine = api.all.get("/healthz", headers={"X-Request-ID": "my-id.1"})
    assert mine.headers["x-request-id"] == "my-id.1"
    for strange in ("a b", "x" * 65, "<script>"):
        answer = api.all.get("/healthz", headers={"X-Request-ID": strange})
        assert re.fullmatch("[0-9a-f]{32}", answer.headers["x-request-id"])


def test_logs_keep_allowed_fields_only() -> None:
    stream = io.StringIO()
    log = build_logger(stream)
    log.info("ingested", dataset_id="d", rows=17, value="secret", state="x" * 1000)
    line = json.loads(stream.getvalue())
    assert set(line) == {"event", "level", "timestamp", "dataset_id", "state"}
    assert len(line["state"]) == 200


@pytest.mark.parametrize(
    "key", ["", "short", "A" * 43 + "=", "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=", "?" * 44]
)
def test_guessable_keys_are_refused(key: str, data_dir: Path) -> None:
    good: dict[str, Any] = {
        "database_url": "postgresql://u@h/d",
        "broker_url": "redis://h/0",
        "storage_url": "file:///x",
        "data_dir": data_dir,
        "master_key": random_key(),
        "signing_key": random_key(),
    }
    Settings(**good)
    for name in ("master_key", "signing_key"):
        with pytest.raises(ValidationError) as caught:
            Settings(**(good | {name: key}))
        assert not key or key not in str(caught.value)


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "DATABASE_URL": "postgresql://scrim_app:pw@db/scrim",
        "BROKER_URL": "redis://broker/0",
        "STORAGE_URL": "s3://bucket/prefix",
        "DATA_DIR": "/var/lib/scrim",
        "MASTER_KEY": random_key(),
        "SIGNING_KEY": random_key(),
        "MAX_UPLOAD_BYTES": "1000",
    }.items():
        monkeypatch.setenv(f"SCRIM_{name}", value)
    settings = Settings()
    assert settings.max_upload_bytes == 1000
    assert settings.anchor_location == "file:///var/lib/scrim/anchor.json"
    monkeypatch.setenv("SCRIM_ANCHOR_URL", "s3://vault/scrim/anchor.json")
    assert Settings().anchor_location == "s3://vault/scrim/anchor.json"
    monkeypatch.setenv("SCRIM_ANCHOR_URL", "s3://vault/")
    with pytest.raises(ValidationError, match="address of the anchor object"):
        Settings()
    monkeypatch.delenv("SCRIM_ANCHOR_URL")
    assert settings.master_key.get_secret_value() not in repr(settings)
    monkeypatch.delenv("SCRIM_MASTER_KEY")
    with pytest.raises(ValidationError):
        Settings()


def test_migration_goes_up_down_and_up(postgres_server: PostgresServer) -> None:
    url = create_database(postgres_server.url)
    engine = open_engine(url)
    assert set(inspect(engine).get_table_names()) == TABLES
    migrate(url, target="0001")
    assert set(inspect(engine).get_table_names()) == {"alembic_version"}
    migrate(url)
    assert set(inspect(engine).get_table_names()) == TABLES
    engine.dispose()


_ACCOUNT = text("SELECT ledger.open_account(:id, 'person', :relation, 1, 1000, 1)")
_PEOPLE = text("""
    INSERT INTO population (id, name, unit, relation, max_rows_per_person, cap, delta)
    VALUES (:id, 'p', 'person', :relation, 1, '{"rho": 1}', 1e-9)
""")
_TABLES = text("""
    INSERT INTO dataset (id, name, population_id, visibility, schema, state, content_hash, wrapped_key)
    VALUES (gen_random_uuid(), :name, :population, 'private', CAST(:schema AS jsonb), 'ready',
            sha256('h'), 'k')
""")


def test_rows_chosen_by_content_are_rejected(postgres_server: PostgresServer) -> None:
    """Only where a value could have moved a person's row to another group."""
    url = create_database(postgres_server.url)
    engine = open_engine(url)
    migrate(url, target="0006")
    with engine.begin() as connection:
        for relation in ("add_remove", "replace_one"):
            population = uuid4()
            for statement in (_ACCOUNT, _PEOPLE):
                connection.execute(statement, {"id": population, "relation": relation})
            for schema in ('{"groups": {}}', '{"columns": []}'):
                name = f"{relation} {'linked' if 'groups' in schema else 'flat'}"
                connection.execute(
                    _TABLES, {"name": name, "population": population, "schema": schema}
                )
    migrate(url)
    with engine.connect() as connection:
        rejected = connection.execute(
            text("SELECT name, reason FROM dataset WHERE state = 'rejected'")
        ).all()
    assert [row.name for row in rejected] == ["replace_one linked"]
    assert "upload the files again" in rejected[0].reason
    engine.dispose()


def test_migration_keeps_populations(api: Api, owner_url: Any) -> None:
    api.population()
    with pytest.raises(RuntimeError, match="the ledger holds accounts"):
        migrate(owner_url, target="0001")
    assert api.all.get("/readyz").status_code == 200


def test_the_application_cannot_rewrite_history(api: Api) -> None:
    for statement in (
        "DELETE FROM release",
        "UPDATE release SET units = 1",
        "UPDATE release_event SET kind = 'state'",
        "DELETE FROM population",
        "UPDATE api_key SET scopes = '{admin}'",
        "UPDATE dataset SET population_id = NULL",
    ):
        with (
            api.session() as session,
            pytest.raises(Exception, match="permission denied"),
        ):
            session.execute(text(statement))


@pytest.mark.parametrize(
    ("modules", "heavy"),
    [("service.app, service.server", ["torch"]), ("service.__main__", ["fastapi", "alembic"])],
)
def test_what_takes_long_to_load_is_not_loaded_in_vain(modules: str, heavy: list[str]) -> None:
    program = f"import sys, {modules}; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_openapi_is_readable(api: Api) -> None:
    document = api.app.openapi()
    schemas = document["components"]["schemas"]
    assert {"Mwem", "Gaussian", "Marginals", "ProblemDocument", "ReleaseRequest"} <= set(schemas)
    assert all("HTTPValidationError" not in name for name in schemas)
    create = document["paths"]["/v1/releases"]["post"]
    problems = create["responses"]["409"]["content"]
    assert list(problems) == ["application/problem+json"]
    body = create["requestBody"]["content"]["application/json"]["schema"]
    ReleaseRequest.model_validate(body["examples"][0])
