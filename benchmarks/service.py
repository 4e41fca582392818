"""`python -m benchmarks.service`: releases at a cap, reads, uploads and the ledger, on real servers.

Clients, service and servers share one machine, so the figures are what that machine does in all.
"""

import argparse
import asyncio
import base64
import os
import resource
import secrets
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import psutil
from sqlalchemy import Engine, text

from benchmarks.report import print_table
from service.datasets import ingest
from service.db import enable_app_login, migrate, open_engine
from service.embedded import PostgresServer, ValkeyServer, find_free_port, wait_until
from service.keys.schemas import SCOPES
from service.keys.service import create_key
from service.ledger import repository as ledger
from service.ledger.records import Operation
from service.work import unit_of_work
from synth.spec.budget import UNITS_PER_RHO

MEBIBYTE = 2**20
PRICE = 0.001
"""What one release of the benchmark asks for, in rho."""
FITTING = 100
"""How many of them fit where the edge of a cap is measured."""
READS = 1000
OPERATIONS = 1000
OUTCOME = bytes(8 * 100)
OPEN_FILES = 8192

SCHEMA = {
    "columns": [
        {"name": "sex", "type": "categorical", "values": ["F", "M"]},
        {"name": "age", "type": "integer", "lower": 0, "upper": 99, "bins": {"width": 10}},
    ]
}


@dataclass(frozen=True)
class Stack:
    """A running service and its database."""

    url: str
    key: str
    process: psutil.Process
    app: Engine
    owner: Engine

    def client(self, connections: int = 1) -> httpx.AsyncClient:
        """A client that may do everything."""
        return httpx.AsyncClient(
            base_url=self.url,
            headers={"Authorization": f"Bearer {self.key}"},
            timeout=600,
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
        )

    def population(self, rho: float) -> UUID:
        """A population with this cap."""
        body = {"name": "people", "cap": {"rho": rho}, "delta": 1e-9}
        return UUID(self._create("/v1/populations", body))

    def dataset(self, population: UUID) -> str:
        """A declared dataset without content."""
        body = {
            "name": "table",
            "visibility": "private",
            "population_id": str(population),
            "schema": SCHEMA,
        }
        return self._create("/v1/datasets", body)

    def ready_dataset(self, population: UUID) -> str:
        """A dataset that was read, as far as the service can tell: settled as a worker would."""
        dataset = self.dataset(population)
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "text/csv"}
        path = f"{self.url}/v1/datasets/{dataset}/content"
        httpx.put(path, content=b"sex,age\nF,31\n", headers=headers).raise_for_status()
        with unit_of_work(self.app) as work:
            epoch = ingest.claim(work.session, UUID(dataset), lease_seconds=60)
            assert epoch is not None
            assert ingest.settle(work.session, UUID(dataset), epoch=epoch, state="ready")
        return dataset

    def _create(self, path: str, body: dict[str, Any]) -> str:
        headers = {"Authorization": f"Bearer {self.key}"}
        answer = httpx.post(self.url + path, json=body, headers=headers)
        answer.raise_for_status()
        return str(answer.json()["id"])


@contextmanager
def running_stack(*, max_upload_bytes: int) -> Iterator[Stack]:
    """Postgres and Valkey, both durable, and one service process."""
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
            "SCRIM_MAX_UPLOAD_BYTES": str(max_upload_bytes),
        }
        app, owner = open_engine(app_url, pool_size=10), open_engine(postgres.url, pool_size=10)
        with unit_of_work(app) as work:
            key = create_key(work.session, "benchmark", SCOPES)[1]
        try:
            with _serving(environment, Path(name) / "service.log") as (url, process):
                yield Stack(url, key, process, app, owner)
        finally:
            app.dispose()
            owner.dispose()


@contextmanager
def _serving(environment: dict[str, str], log: Path) -> Iterator[tuple[str, psutil.Process]]:
    port = find_free_port()
    url = f"http://127.0.0.1:{port}"
    argv = [sys.executable, "-m", "service", "serve", "--port", str(port)]
    with log.open("wb") as output:
        service = subprocess.Popen(argv, env=os.environ | environment, stderr=output)
    try:
        wait_until(lambda: _is_ready(url), timeout=60, what="the service")
        yield url, psutil.Process(service.pid)
    finally:
        service.terminate()
        service.wait(60)


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=5).is_success
    except httpx.TransportError:
        return False


def _random_key() -> str:
    return base64.b64encode(secrets.token_bytes(32)).decode()


# Releases


def releases_at_the_edge(stack: Stack, *, submissions: int, clients: int) -> None:
    """Submissions that all fit, that all do not, and of which exactly some fit."""
    rows = []
    for title, fitting, at_once in (
        ("all fit", submissions, clients),
        ("none fits", 0, clients),
        (f"{FITTING} fit", FITTING, clients),
        (f"{FITTING} fit", FITTING, submissions),
    ):
        cap = round((fitting or 0.5) * PRICE, 6)
        population = stack.population(cap)
        dataset = stack.ready_dataset(population)
        with watched(stack.app, population) as largest:
            start = time.perf_counter()
            outcomes = asyncio.run(_submit(stack, dataset, submissions, at_once))
            took = time.perf_counter() - start
        accepted, refused = outcomes["202"], outcomes["/problems/budget-exhausted"]
        assert accepted == min(fitting, submissions), outcomes
        assert accepted + refused == submissions, outcomes
        with stack.app.connect() as connection:
            account = ledger.account(connection, population)
        assert account.reserved_units == accepted * round(PRICE * UNITS_PER_RHO)
        assert max(largest) <= account.cap_units
        share = max(largest) / account.cap_units
        rows.append([title, at_once, accepted, refused, submissions / took, share])
    print_table(
        f"{submissions:,} releases submitted over HTTP; the cap was watched throughout",
        ["", "at once", "accepted", "refused", "per second", "most held / cap"],
        rows,
    )


async def _submit(stack: Stack, dataset: str, submissions: int, at_once: int) -> Counter[str]:
    body = {
        "dataset_id": dataset,
        "workload": [{"type": "marginals", "k": 2}],
        "mechanism": {"name": "mwem", "rounds": 3},
        "budget": {"rho": PRICE},
    }
    outcomes: Counter[str] = Counter()

    async with stack.client(at_once) as client:

        async def submit() -> None:
            headers = {"Idempotency-Key": uuid.uuid4().hex}
            answer = await client.post("/v1/releases", json=body, headers=headers)
            is_accepted = answer.status_code == 202
            outcomes["202" if is_accepted else str(answer.json()["type"])] += 1

        await _repeat(submit, times=submissions, at_once=at_once)
    return outcomes


async def _repeat(action: Callable[[], Awaitable[None]], *, times: int, at_once: int) -> None:
    """Do something so many times, so many of them at any moment."""
    left = iter(range(times))

    async def one_after_the_other() -> None:
        for _ in left:
            await action()

    await asyncio.gather(*(one_after_the_other() for _ in range(at_once)))


@contextmanager
def watched(engine: Engine, population: UUID) -> Iterator[list[int]]:
    """What a population has spent and reserved, looked at again and again."""
    seen, stopping = [0], threading.Event()

    def look() -> None:
        while not stopping.wait(0.005):
            with engine.connect() as connection:
                account = ledger.account(connection, population)
            seen.append(account.spent_units + account.reserved_units)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        stopping.set()
        thread.join()


# Reads


def reads(stack: Stack, *, clients: int) -> None:
    """How long reading takes, alone and in company."""
    population = stack.population(1.0)
    rows = []
    for path in (f"/v1/populations/{population}", "/v1/releases?limit=50"):
        for at_once in (1, clients):
            times = sorted(asyncio.run(_read(stack, path, at_once)))
            shown = path.replace(str(population), "{id}")
            p99 = statistics.quantiles(times, n=100)[98]
            rows.append([shown, at_once, 1000 * statistics.median(times), 1000 * p99])
    print_table(
        f"{READS:,} reads over HTTP, milliseconds",
        ["", "at once", "median", "99th percentile"],
        rows,
    )


async def _read(stack: Stack, path: str, at_once: int) -> list[float]:
    times = []

    async with stack.client(at_once) as client:

        async def read() -> None:
            start = time.perf_counter()
            (await client.get(path)).raise_for_status()
            times.append(time.perf_counter() - start)

        await _repeat(read, times=READS, at_once=at_once)
    return times


# Uploads


def upload(stack: Stack, mebibytes: int) -> None:
    """One upload, and how much memory the service takes for it."""
    dataset = stack.dataset(stack.population(1.0))
    before = stack.process.memory_info().rss
    with peak_memory(stack.process) as peak:
        start = time.perf_counter()
        answer = asyncio.run(_upload(stack, dataset, mebibytes))
        took = time.perf_counter() - start
    assert answer.status_code == 202, answer.text
    print_table(
        "One CSV uploaded over HTTP, encrypted on the way to a local folder",
        ["", "MiB", "seconds", "MiB per second", "memory before, MiB", "at its peak, MiB"],
        [
            [
                "service",
                mebibytes,
                took,
                mebibytes / took,
                before / MEBIBYTE,
                max(peak) / MEBIBYTE,
            ]
        ],
    )


async def _upload(stack: Stack, dataset: str, mebibytes: int) -> httpx.Response:
    lines = b"".join(b"%s,%d\n" % (secrets.choice([b"F", b"M"]), i % 100) for i in range(250_000))
    block = lines[:MEBIBYTE]

    async def content() -> AsyncIterator[bytes]:
        for _ in range(mebibytes):
            yield block

    async with stack.client() as client:
        headers = {"Content-Type": "text/csv", "Content-Length": str(mebibytes * MEBIBYTE)}
        path = f"/v1/datasets/{dataset}/content"
        return await client.put(path, content=content(), headers=headers)


@contextmanager
def peak_memory(process: psutil.Process) -> Iterator[list[int]]:
    """The resident memory of a process, looked at again and again."""
    seen, stopping = [process.memory_info().rss], threading.Event()

    def look() -> None:
        while not stopping.wait(0.01):
            seen.append(process.memory_info().rss)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        stopping.set()
        thread.join()


# The ledger


def ledger_operations(stack: Stack, *, workers: int) -> None:
    """Committed charges against plain rows of the same size, one transaction each."""
    with stack.owner.begin() as connection:
        connection.execute(text('CREATE TABLE plain (id uuid, sequence bigint, "values" bytea)'))
    rows = []
    for number in (1, workers):
        plain = _each_at_once([lambda: _insert(stack) for _ in range(number)])
        charged = _each_at_once([_charging(stack) for _ in range(number)])
        done = number * OPERATIONS
        rows.append([number, done / plain, done / charged, charged / plain])
    print_table(
        "Transactions per second on the same Postgres, with fsync, each worker on its own population",
        ["workers", "plain INSERT", "commit_operation", "times as long"],
        rows,
    )


def _insert(stack: Stack) -> None:
    statement = text('INSERT INTO plain (id, sequence, "values") VALUES (:id, :sequence, :outcome)')
    release = uuid.uuid4()
    for sequence in range(OPERATIONS):
        with stack.owner.begin() as connection:
            parameters = {"id": release, "sequence": sequence, "outcome": OUTCOME}
            connection.execute(statement, parameters)


def _charging(stack: Stack) -> Callable[[], None]:
    """A claimed release, and the charging of all its operations."""
    population, release = stack.population(1.0), uuid.uuid4()
    with stack.app.begin() as connection:
        ledger.reserve(
            connection,
            population,
            release_id=release,
            amount_units=OPERATIONS,
            dataset_hash=bytes(32),
            spec_hash=bytes(32),
        )
        epoch = ledger.claim(connection, release, holder="benchmark", lease_seconds=3600)

    def charge() -> None:
        for sequence in range(OPERATIONS):
            operation = Operation(sequence, "measure", {"marginal": ["age"]}, 2.5, 1, OUTCOME)
            with stack.app.begin() as connection:
                ledger.commit_operation(connection, release, epoch=epoch, operation=operation)

    return charge


def _each_at_once(actions: list[Callable[[], None]]) -> float:
    """Seconds until all of them are done."""
    with ThreadPoolExecutor(len(actions)) as pool:
        start = time.perf_counter()
        for done in [pool.submit(action) for action in actions]:
            done.result()
        return time.perf_counter() - start


def main() -> None:
    """Run all, on servers of their own that are thrown away."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service", description=__doc__)
    parser.add_argument("--upload-mib", type=int, default=500, help="size of the uploaded table")
    parser.add_argument("--submissions", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=50, help="how many ask at once")
    given = parser.parse_args()
    # A thousand connections at once, on both sides.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(OPEN_FILES, most), most))
    with running_stack(max_upload_bytes=given.upload_mib * MEBIBYTE) as stack:
        releases_at_the_edge(stack, submissions=given.submissions, clients=given.clients)
        reads(stack, clients=given.clients)
        ledger_operations(stack, workers=4)
        upload(stack, given.upload_mib)


if __name__ == "__main__":
    main()
