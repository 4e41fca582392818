"""A service on temporary real servers, optionally with workers."""

import base64
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import psutil
from sqlalchemy import Engine

from service.data import ingest
from service.data.db import enable_app_login, migrate, open_engine
from service.data.work import unit_of_work
from service.embedded import PostgresServer, ValkeyServer, find_free_port, wait_until
from service.keys.schemas import SCOPES
from service.keys.service import create_key

READY_SECONDS = 120
STOP_SECONDS = 60
ANSWER_SECONDS = 600
JOB_SECONDS = 3600
PAUSE_SECONDS = 0.2

SCHEMA = {
    "columns": [
        {"name": "sex", "type": "categorical", "values": ["F", "M"]},
        {"name": "age", "type": "integer", "lower": 0, "upper": 99, "bins": {"width": 10}},
    ]
}


@dataclass(frozen=True)
class Stack:
    """A running service, its database, and the settings for workers."""

    url: str
    key: str
    process: psutil.Process
    app: Engine
    owner: Engine
    environment: dict[str, str]
    folder: Path

    @property
    def headers(self) -> dict[str, str]:
        """Headers with a key that has all scopes."""
        return {"Authorization": f"Bearer {self.key}"}

    def client(self, connections: int = 1) -> httpx.AsyncClient:
        """A client for many concurrent calls."""
        return httpx.AsyncClient(
            base_url=self.url,
            headers=self.headers,
            timeout=ANSWER_SECONDS,
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
        )

    def get(self, path: str) -> dict[str, Any]:
        """Get the response at this path."""
        answer = httpx.get(self.url + path, headers=self.headers, timeout=ANSWER_SECONDS)
        answer.raise_for_status()
        shown: dict[str, Any] = answer.json()
        return shown

    def wait_for(self, path: str, state: str) -> None:
        """Poll until the resource has this state, slowly enough not to disturb the measurement."""
        deadline = time.monotonic() + JOB_SECONDS
        while (found := self.get(path)["state"]) != state:
            assert time.monotonic() < deadline and found not in {"failed", "rejected"}, found
            time.sleep(PAUSE_SECONDS)

    def population(self, rho: float) -> UUID:
        """Create a population with this cap."""
        body = {"name": "people", "cap": {"rho": rho}, "delta": 1e-9}
        return UUID(self.create("/v1/populations", body))

    def dataset(self, population: UUID, schema: dict[str, Any] = SCHEMA) -> str:
        """Declare a dataset without content."""
        body = {"name": "table", "visibility": "private", "population_id": str(population)}
        return self.create("/v1/datasets", body | {"schema": schema})

    def upload(self, dataset: str, content: bytes) -> None:
        """Upload a small table."""
        headers = self.headers | {"Content-Type": "text/csv"}
        path = f"{self.url}/v1/datasets/{dataset}/content"
        httpx.put(path, content=content, headers=headers).raise_for_status()

    def settled_dataset(self, population: UUID) -> str:
        """A dataset that is settled as if a worker had ingested it."""
        dataset = self.dataset(population)
        self.upload(dataset, b"sex,age\nF,31\n")
        with unit_of_work(self.app) as work:
            epoch = ingest.claim(work.session, UUID(dataset), lease_seconds=60)
            assert epoch is not None
            assert ingest.settle(work.session, UUID(dataset), epoch=epoch, state="ready")
        return dataset

    def create(self, path: str, body: dict[str, Any]) -> str:
        """Create something; returns its id."""
        headers = self.headers | {"Idempotency-Key": secrets.token_hex(16)}
        answer = httpx.post(self.url + path, json=body, headers=headers, timeout=ANSWER_SECONDS)
        answer.raise_for_status()
        return str(answer.json()["id"])

    @contextmanager
    def worker(self, queue: str) -> Iterator[psutil.Process]:
        """Run a worker of one queue, and its child processes."""
        log = self.folder / f"{queue}.log"
        argv = [sys.executable, "-m", "worker", "--queue", queue]
        with _running(argv, self.environment, log) as process:
            wait_until(
                lambda: b"worker_ready" in log.read_bytes(), timeout=READY_SECONDS, what="a worker"
            )
            yield process


@contextmanager
def running_stack(*, max_upload_bytes: int) -> Iterator[Stack]:
    """Run Postgres and Valkey, both durable, and one service process."""
    with (
        tempfile.TemporaryDirectory(prefix="scrim-bench-") as name,
        PostgresServer(Path(name)) as postgres,
        ValkeyServer(Path(name)) as valkey,
    ):
        migrate(postgres.url)
        app_url = enable_app_login(postgres.url, password=secrets.token_hex(24))
        environment = {
            "SCRIM_DATABASE_URL": app_url.render_as_string(hide_password=False),
            "SCRIM_BROKER_URL": valkey.url,
            "SCRIM_STORAGE_URL": (Path(name) / "objects").as_uri(),
            "SCRIM_DATA_DIR": name,
            "SCRIM_MASTER_KEY": _random_key(),
            "SCRIM_SIGNING_KEY": _random_key(),
            "SCRIM_RATE_LIMIT": "1000000",
            "SCRIM_RATE_BURST": "1000000",
            "SCRIM_MAX_CONNECTIONS": "2000",
            "SCRIM_MAX_REQUESTS_PER_KEY": "2000",
            "SCRIM_MAX_UPLOAD_BYTES": str(max_upload_bytes),
            "SCRIM_MAX_QUEUED_RELEASES": "1000000",
        }
        app, owner = open_engine(app_url, pool_size=10), open_engine(postgres.url, pool_size=10)
        with unit_of_work(app) as work:
            key = create_key(work.session, "benchmark", SCOPES)[1]
        try:
            with _serving(environment, Path(name) / "service.log") as (url, process):
                yield Stack(url, key, process, app, owner, environment, Path(name))
        finally:
            app.dispose()
            owner.dispose()


@contextmanager
def _serving(environment: dict[str, str], log: Path) -> Iterator[tuple[str, psutil.Process]]:
    port = find_free_port()
    url = f"http://127.0.0.1:{port}"
    argv = [sys.executable, "-m", "service", "serve", "--port", str(port)]
    with _running(argv, environment, log) as process:
        wait_until(lambda: _is_ready(url), timeout=READY_SECONDS, what="the service")
        yield url, process


@contextmanager
def _running(argv: list[str], environment: dict[str, str], log: Path) -> Iterator[psutil.Process]:
    with log.open("wb") as output:
        started = subprocess.Popen(
            argv, env=os.environ | environment, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield psutil.Process(started.pid)
    finally:
        started.terminate()
        started.wait(STOP_SECONDS)


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=5).is_success
    except httpx.TransportError:
        return False


def _random_key() -> str:
    return base64.b64encode(secrets.token_bytes(32)).decode()
