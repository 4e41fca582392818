"""A running service for tests: its own database, storage folder and log, over real HTTP."""

import base64
import io
import secrets
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI
from hypothesis import HealthCheck, settings
from sqlalchemy.orm import Session

from service.app import create_app
from service.data import datasets, ingest, progress
from service.data.config import Settings
from service.data.context import Context
from service.data.crypto import decrypt_pieces, unwrap_key, upload_purpose
from service.data.db import enable_app_login
from service.data.logging import build_logger
from service.data.models import DatasetRow, UploadRow
from service.keys.schemas import SCOPES, Scope
from service.keys.service import create_key
from service.server import LimitedServer
from tests.patience import PATIENCE

SCHEMA = {
    "columns": [
        {
            "name": "sex",
            "type": "categorical",
            "values": ["F", "M"],
            "other": "M",
            "nullable": False,
        },
        {
            "name": "age",
            "type": "integer",
            "lower": 0,
            "upper": 99,
            "bins": {"width": 10},
            "nullable": False,
        },
    ]
}
CSV = b"sex,age\nF,31\nM,44\n"
TWO_LEVEL = {
    "groups": {
        "key": "hid",
        "columns": [{"name": "town", "type": "categorical", "values": ["a", "b"]}],
    },
    "individuals": {"group_key": "hid", "columns": SCHEMA["columns"]},
    "max_group_size": 5,
}
HOUSEHOLDS: dict[str, Any] = {"unit": "household", "max_household_size": 8}
LEASE_SECONDS = 60.0


def examples(number: int) -> settings:
    """This many random requests, the same in every run."""
    return settings(
        max_examples=number,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


def random_key() -> str:
    return base64.b64encode(secrets.token_bytes(32)).decode()


def settings_for(owner_url: Any, broker_url: str, folder: Path, **changes: Any) -> Settings:
    app_url = enable_app_login(owner_url, password="correct horse")
    values: dict[str, Any] = {
        "database_url": app_url.set(drivername="postgresql").render_as_string(hide_password=False),
        "broker_url": broker_url,
        "storage_url": f"file://{folder}/objects",
        "data_dir": folder,
        "master_key": random_key(),
        "signing_key": random_key(),
        "rate_limit": 10_000,
        "rate_burst": 10_000,
        "event_poll_seconds": 0.02,
        "model_timeout_seconds": PATIENCE,
    }
    return Settings(**(values | changes))


class Api:
    """The service over HTTP, with access to its internals to simulate a worker."""

    def __init__(self, app: FastAPI, url: str, log: io.StringIO, folder: Path) -> None:
        self.app = app
        self.url = url
        self.log = log
        self.folder = folder
        self._clients: dict[tuple[Scope, ...], httpx.Client] = {}

    @property
    def context(self) -> Context:
        context: Context = self.app.state.context
        return context

    def session(self) -> Session:
        return Session(self.context.engine, expire_on_commit=False)

    def new_key(self, *scopes: Scope) -> str:
        with self.session() as session, session.begin():
            return create_key(session, "test", scopes)[1]

    def client(self, key: str | None) -> httpx.Client:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=PATIENCE)

    def role(self, *scopes: Scope) -> httpx.Client:
        """A client with a key of these scopes."""
        if scopes not in self._clients:
            self._clients[scopes] = self.client(self.new_key(*scopes))
        return self._clients[scopes]

    @property
    def all(self) -> httpx.Client:
        """A client that may do everything."""
        return self.role(*SCOPES)

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def population(self, **changes: Any) -> str:
        body = {"name": "people", "cap": {"rho": 1.0}, "delta": 1e-9} | changes
        answer = self.all.post("/v1/populations", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def dataset(self, population: str, schema: Any = SCHEMA) -> str:
        """A declared dataset without content."""
        body = {
            "name": "table",
            "visibility": "private",
            "population_id": population,
            "schema": schema,
        }
        answer = self.all.post("/v1/datasets", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def upload(self, dataset: str, content: Any = CSV, **options: Any) -> httpx.Response:
        options = {"headers": {"Content-Type": "text/csv"}} | options
        return self.all.put(f"/v1/datasets/{dataset}/content", content=content, **options)

    def ready_dataset(self, population: str, schema: Any = SCHEMA) -> str:
        """A dataset that a worker has read."""
        dataset = self.dataset(population, schema)
        for table in ("groups", "individuals") if "groups" in schema else ("rows",):
            answer = self.upload(dataset, params={"table": table})
        assert answer.status_code == 202, answer.text
        with self.session() as session, session.begin():
            epoch = ingest.claim(session, uuid.UUID(dataset), lease_seconds=LEASE_SECONDS)
            assert epoch is not None
            assert ingest.settle(session, uuid.UUID(dataset), epoch=epoch, state="ready")
        return dataset

    def create(self, body: dict[str, Any], *, key: str | None = None) -> httpx.Response:
        headers = {"Idempotency-Key": key or uuid.uuid4().hex}
        return self.all.post("/v1/releases", json=body, headers=headers)

    def release(self, dataset: str, **changes: Any) -> str:
        answer = self.create(release_body(dataset, **changes))
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def finish(
        self,
        release: str,
        artifacts: dict[str, bytes] | None = None,
        quality: dict[str, Any] | None = None,
    ) -> None:
        """Record a result as a worker does."""
        with self.session() as session, session.begin():
            release_id = uuid.UUID(release)
            assert progress.start(session, release_id) is not None
            assert progress.report(session, release_id, done=1, total=2, spent_units=0)
            for name, content in (artifacts or {}).items():
                stored = self.context.storage.write_content("artifacts", [content])
                progress.add_artifact(
                    session, release_id, name, stored=stored, media_type="text/csv"
                )
            assert progress.finish(session, release_id, "succeeded", quality=quality)

    def budget(self, population: str) -> dict[str, float]:
        budget: dict[str, float] = self.all.get(f"/v1/populations/{population}").json()["budget"]
        return budget

    def objects(self) -> list[Path]:
        """Every stored file."""
        return [path for path in (self.folder / "objects").rglob("*") if path.is_file()]


def release_body(dataset: str, **changes: Any) -> dict[str, Any]:
    body = {
        "dataset_id": dataset,
        "workload": [{"type": "marginals", "k": 2}],
        "mechanism": {"name": "mwem", "rounds": 3},
        "budget": {"rho": 0.1},
    }
    return body | changes


@contextmanager
def serving(settings: Settings, folder: Path) -> Iterator[Api]:
    """The service, in a thread of its own."""
    log = io.StringIO()
    app = create_app(settings, log=build_logger(log))
    server = LimitedServer(app, settings, port=0)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the service did not start"
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        api = Api(app, f"http://127.0.0.1:{port}", log, folder)
        yield api
        api.close()
    finally:
        server.release_streams()
        server.should_exit = True
        thread.join(timeout=PATIENCE)
        assert not thread.is_alive()


def problem(answer: httpx.Response, status: int, kind: str) -> dict[str, Any]:
    """Check that a response is a problem, and return it."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = answer.json()
    assert set(found) == {"type", "title", "status", "detail", "errors", "request_id"}
    assert (found["type"], found["status"]) == (f"/problems/{kind}", status)
    assert found["request_id"] == answer.headers["x-request-id"]
    return found


def pages(client: httpx.Client, path: str, limit: int) -> Sequence[list[dict[str, Any]]]:
    """Every page of a collection."""
    found, cursor = [], None
    while True:
        parameters = {"limit": str(limit)} | ({"cursor": cursor} if cursor else {})
        answer = client.get(path, params=parameters)
        assert answer.status_code == 200, answer.text
        found.append(answer.json()["items"])
        cursor = answer.json()["next"]
        if cursor is None:
            return found


def stored_upload(api: Api, dataset: str, table: str = "rows") -> tuple[DatasetRow, UploadRow]:
    with api.session() as session:
        row = datasets.get(session, uuid.UUID(dataset))
        uploads = {each.table_name: each for each in datasets.uploads(session, row.id)}
    return row, uploads[table]


def read_back(api: Api, dataset: str, table: str = "rows") -> bytes:
    """As the worker reads it."""
    row, upload = stored_upload(api, dataset, table)
    assert row.wrapped_key is not None
    master_key = api.context.settings.master_key_bytes
    key = unwrap_key(row.wrapped_key, row.id, master_key=master_key)
    pieces = api.context.storage.read(upload.object_key)
    return b"".join(decrypt_pieces(key, pieces, purpose=upload_purpose(table)))
