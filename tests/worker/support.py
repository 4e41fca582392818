"""A whole installation for tests: real database, broker and service, with workers where wanted."""

import base64
import io
import os
import secrets
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import numpy as np
from sqlalchemy import URL, text

from service.app import create_app
from service.data.config import Settings
from service.data.context import Context
from service.data.db import enable_app_login, open_engine
from service.data.ledger import repository as ledger
from service.data.ledger.chain import verify_chain
from service.data.ledger.records import LedgerAccount, LedgerOperation, Reservation
from service.data.logging import build_logger
from service.embedded import Command, wait_until
from service.keys.schemas import SCOPES
from service.keys.service import create_key
from service.server import LimitedServer
from tests.databases import create_database
from tests.fresh_noise import announce_noise
from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]

SCHEMA: dict[str, Any] = {
    "columns": [
        {"name": "sex", "type": "categorical", "values": ["F", "M"], "nullable": False},
        {"name": "age", "type": "integer", "lower": 0, "upper": 99, "bins": {"width": 25}},
        {"name": "town", "type": "categorical", "values": ["a", "b", "=c"]},
    ]
}
OWNED_SCHEMA: dict[str, Any] = {
    "columns": [*SCHEMA["columns"], {"name": "pid", "type": "identifier"}]
}
TWO_LEVEL: dict[str, Any] = {
    "groups": {"key": "hid", "columns": [SCHEMA["columns"][2]]},
    "individuals": {"group_key": "hid", "columns": SCHEMA["columns"][:2]},
    "max_group_size": 3,
}
H_GEM: dict[str, Any] = {
    "workload": [{"type": "hierarchical", "k": 2}, {"type": "group_sizes"}],
    "mechanism": {"name": "h_gem", "rounds": 2, "components": 20, "hidden": [16], "steps": 30},
    "budget": {"rho": 1.0},
}
"""A release of groups and individuals that takes little time."""
HOUSEHOLDS: dict[str, Any] = {"unit": "household", "max_household_size": 4}


def csv_rows(rows: int = 200, *, seed: int = 0) -> bytes:
    """A table that fits the schemas; each person owns four rows."""
    rng = np.random.default_rng(seed)
    lines = [
        f"{'FM'[rng.integers(2)]},{rng.integers(100)},{'ab'[rng.integers(2)]},p{number // 4}"
        for number in range(rows)
    ]
    return "\n".join(["sex,age,town,pid", *lines, ""]).encode()


def households(groups: int, *, seed: int = 0) -> tuple[bytes, bytes]:
    """Tables of groups and of individuals, some groups larger than they may be, in no order."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, size=groups)
    keys = rng.permutation(np.repeat(np.arange(groups), sizes))
    described = [f"{key},{'ab'[rng.integers(2)]}" for key in rng.permutation(groups)]
    people = [f"{key},{'FM'[rng.integers(2)]},{rng.integers(100)}" for key in keys]
    return (
        "\n".join(["hid,town", *described, ""]).encode(),
        "\n".join(["hid,sex,age", *people, ""]).encode(),
    )


def random_key() -> str:
    return base64.b64encode(secrets.token_bytes(32)).decode()


def await_that(condition: Callable[[], bool], what: str, *, timeout: float = PATIENCE) -> None:
    """Poll until the condition holds."""
    wait_until(condition, timeout=timeout, what=what)


class Stack:
    """An installation, and what a curator, a worker and its owner can do with it."""

    def __init__(self, owner_url: URL, environment: dict[str, str], folder: Path) -> None:
        self.environment = environment
        self.folder = folder
        self.log = io.StringIO()
        self.owner = open_engine(owner_url)
        with _settings_from(environment) as self.settings:
            self.app = create_app(self.settings, log=build_logger(self.log))
        self.http: httpx.Client
        self._populations: list[UUID] = []

    @property
    def context(self) -> Context:
        context: Context = self.app.state.context
        return context

    # What a curator does.

    def population(self, **changes: Any) -> UUID:
        body = {"name": "people", "cap": {"rho": 10.0}, "delta": 1e-9} | changes
        created = self._post("/v1/populations", body)
        self._populations.append(UUID(created["id"]))
        return self._populations[-1]

    def schema(self, name: str, schema: dict[str, Any]) -> UUID:
        """A saved schema."""
        return UUID(self._post("/v1/schemas", {"name": name, "schema": schema})["id"])

    def dataset(self, population: UUID | None, schema: dict[str, Any] = SCHEMA) -> UUID:
        """A declared dataset; without a population, a public one."""
        body: dict[str, Any] = {"name": "table", "schema": schema}
        if population is None:
            body |= {"visibility": "public", "provenance": "a test"}
            body |= {"disjoint_from_population": True}
        else:
            body |= {"visibility": "private", "population_id": str(population)}
        return UUID(self._post("/v1/datasets", body)["id"])

    def upload(
        self, dataset: UUID, content: bytes, *, kind: str = "text/csv", table: str | None = None
    ) -> None:
        answer = self.http.put(
            f"/v1/datasets/{dataset}/content",
            content=content,
            headers={"Content-Type": kind},
            params={} if table is None else {"table": table},
        )
        assert answer.status_code in {200, 202}, answer.text

    def uploaded(self, population: UUID | None = None, content: bytes | None = None) -> UUID:
        """A dataset that waits for a worker."""
        dataset = self.dataset(population or self.population())
        self.upload(dataset, content or csv_rows())
        return dataset

    def curator(self) -> str:
        """The key of another curator."""
        with self.context.transaction() as work:
            return create_key(work.session, "another curator", ["curator"])[1]

    def submit(self, dataset: UUID, *, key: str | None = None, **changes: Any) -> UUID:
        body = {
            "dataset_id": str(dataset),
            "workload": [{"type": "marginals", "k": 2}],
            "mechanism": {"name": "mwem", "rounds": 3},
            "budget": {"rho": 0.1},
            "outputs": {"rows": 60},
        }
        return UUID(self._post("/v1/releases", body | changes, key=key)["id"])

    def show(self, kind: str, identifier: UUID) -> dict[str, Any]:
        answer = self.http.get(f"/v1/{kind}/{identifier}")
        assert answer.status_code == 200, answer.text
        shown: dict[str, Any] = answer.json()
        return shown

    def release(self, release: UUID) -> dict[str, Any]:
        return self.show("releases", release)

    def cancel(self, release: UUID) -> None:
        assert self.http.post(f"/v1/releases/{release}/cancel").status_code == 200

    def artifact(self, release: UUID, name: str) -> bytes:
        answer = self.http.get(f"/v1/releases/{release}/artifacts/{name}")
        assert answer.status_code == 200, answer.text
        return answer.content

    def _post(self, path: str, body: dict[str, Any], *, key: str | None = None) -> dict[str, Any]:
        headers = {"Idempotency-Key": uuid.uuid4().hex}
        headers |= {} if key is None else {"Authorization": f"Bearer {key}"}
        answer = self.http.post(path, json=body, headers=headers)
        assert answer.status_code in {201, 202}, answer.text
        created: dict[str, Any] = answer.json()
        return created

    # What can be seen from inside.

    def journal(self, release: UUID) -> list[LedgerOperation]:
        with self.context.engine.connect() as connection:
            return ledger.journal(connection, release)

    def reservation(self, release: UUID) -> Reservation:
        with self.context.engine.connect() as connection:
            return ledger.reservation(connection, release)

    def account(self, population: UUID) -> LedgerAccount:
        with self.context.engine.connect() as connection:
            return ledger.account(connection, population)

    def scalar(self, statement: str, **parameters: Any) -> Any:
        """Run a statement as the database's owner."""
        with self.owner.begin() as connection:
            result = connection.execute(text(statement), parameters)
            return result.scalar() if result.returns_rows else None

    def expire_lease(self, release: UUID) -> None:
        """Expire the lease of a worker that does not renew it."""
        self.scalar(
            "UPDATE ledger.reservation SET lease_until = now() - interval '1 second'"
            " WHERE release_id = :id AND state = 'open' AND lease_holder IS NOT NULL",
            id=release,
        )

    def objects(self, prefix: str = "") -> list[Path]:
        """Every stored file whose key begins so."""
        root = self.folder / "objects"
        return sorted(
            path
            for path in root.rglob("*")
            if path.is_file() and str(path.relative_to(root)).startswith(prefix)
        )

    def populations(self) -> frozenset[UUID]:
        """All populations so far."""
        return frozenset(self._populations)

    def check(self, *, apart_from: Collection[UUID] = ()) -> None:
        """Every chain verifies, and what was spent is what was journaled."""
        self.context.check_anchor()
        for population in self.populations().difference(apart_from):
            report = verify_chain(self.context.engine, population)
            assert report.ok, report.fault
        wrong = self.scalar(
            "SELECT count(*) FROM ledger.reservation AS r WHERE spent_units <>"
            " (SELECT coalesce(sum(price_units), 0) FROM ledger.operation AS o"
            "  WHERE o.release_id = r.release_id)"
        )
        assert wrong == 0

    # Processes.

    def process(self, name: str, *arguments: str, **changes: str) -> Command:
        """A worker or reaper, not yet started; `arguments` are those of Python."""
        announce_noise()
        log_path = self.folder / "logs" / f"{name}.log"
        marker = b"_ready"
        return Command(
            self.folder,
            name,
            argv=[sys.executable, *arguments],
            env=self.environment | changes,
            is_ready=lambda: log_path.exists() and marker in log_path.read_bytes(),
            # They can be killed safely, and this saves seconds.
            stop_signal=signal.SIGKILL,
        )

    def logs(self) -> bytes:
        """The logs of all processes."""
        files = (self.folder / "logs").glob("*")
        return self.log.getvalue().encode() + b"".join(path.read_bytes() for path in files)


def emptied(stack: Stack) -> None:
    """End everything that an earlier test left queued, and delete its messages."""
    stack.scalar(
        "UPDATE release SET state = 'cancelled', finished_at = now()"
        " WHERE state IN ('queued', 'running')"
    )
    stack.scalar("UPDATE dataset SET state = 'rejected' WHERE state = 'ingesting'")
    stack.context.broker.flushdb()


@contextmanager
def _settings_from(environment: dict[str, str]) -> Iterator[Settings]:
    """Settings as a process with this environment would read them."""
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        yield Settings()
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def running_stack(
    server_url: str, broker_url: str, folder: Path, **changes: str
) -> Iterator[Stack]:
    """A database of its own, and the service in a thread of its own."""
    owner_url = create_database(server_url)
    app_url = enable_app_login(owner_url, password="correct horse").set(drivername="postgresql")
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "TMPDIR": str(folder / "tmp"),
        "SCRIM_DATABASE_URL": app_url.render_as_string(hide_password=False),
        "SCRIM_BROKER_URL": broker_url,
        "SCRIM_STORAGE_URL": f"file://{folder}/objects",
        "SCRIM_DATA_DIR": str(folder),
        "SCRIM_MASTER_KEY": random_key(),
        "SCRIM_SIGNING_KEY": random_key(),
        "SCRIM_RATE_LIMIT": "100000",
        "SCRIM_RATE_BURST": "100000",
        "SCRIM_EVENT_POLL_SECONDS": "0.02",
        # What is fitted here is small, and threads of several workers wait for each other.
        "OMP_NUM_THREADS": "1",
    }
    (folder / "tmp").mkdir()
    stack = Stack(owner_url, environment | changes, folder)
    server = LimitedServer(stack.app, stack.settings, port=0)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the service did not start"
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        with stack.context.transaction() as work:
            key = create_key(work.session, "test", SCOPES)[1]
        headers = {"Authorization": f"Bearer {key}"}
        with httpx.Client(
            base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=PATIENCE
        ) as stack.http:
            yield stack
    finally:
        server.release_streams()
        server.should_exit = True
        thread.join(timeout=PATIENCE)
        stack.owner.dispose()
