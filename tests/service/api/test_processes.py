"""The service as several processes on one port, and under attack as real processes."""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest

from service.data.config import Settings
from service.data.db import open_engine
from service.data.work import unit_of_work
from service.embedded import PostgresServer, ValkeyServer, find_free_port, wait_until
from service.keys.schemas import SCOPES
from service.keys.service import create_key
from service.processes import serve
from tests.databases import create_database

from .support import settings_for

MEGABYTE = 10**6
MEBIBYTE = 2**20
START_SECONDS = 60
STOP_SECONDS = 60
ATTACK_SECONDS = 10.0
ATTACKERS = 8


@dataclass(frozen=True)
class Running:
    """A service that was started by its command."""

    url: str
    key: str
    parent: psutil.Process

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    def children(self) -> set[int]:
        return {child.pid for child in self.parent.children()}

    def get(self, path: str) -> httpx.Response:
        """Send a request over a new connection, so that any of the processes may answer."""
        return httpx.get(self.url + path, headers=self.headers, timeout=30)


@contextmanager
def running_service(settings: Settings) -> Iterator[Running]:
    engine = open_engine(str(settings.database_url))
    with unit_of_work(engine) as work:
        key = create_key(work.session, "test", SCOPES)[1]
    engine.dispose()
    port = find_free_port()
    argv = [sys.executable, "-m", "service", "serve", "--port", str(port)]
    with subprocess.Popen(argv, env=os.environ | _variables(settings)) as process:
        running = Running(f"http://127.0.0.1:{port}", key, psutil.Process(process.pid))
        try:
            wait_until(lambda: _is_up(running), timeout=START_SECONDS, what="the service")
            yield running
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(STOP_SECONDS)


def _variables(settings: Settings) -> dict[str, str]:
    secrets = {"master_key", "signing_key"}
    plain = settings.model_dump(exclude=secrets, exclude_none=True, mode="json")
    found = {name: getattr(settings, name).get_secret_value() for name in secrets}
    return {f"SCRIM_{name.upper()}": str(value) for name, value in (plain | found).items()}


def _is_up(running: Running) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(f"{running.url}/readyz", timeout=5).is_success
    return False


def _counted(running: Running) -> int:
    route = r'route="/healthz",status="200"'
    found = re.search(
        rf'scrim_requests_total{{method="GET",{route}}} (\S+)', running.get("/metrics").text
    )
    return 0 if found is None else int(float(found.group(1)))


def test_several_processes_share_port_and_counters_and_stop_together(
    postgres_server: PostgresServer, valkey_server: ValkeyServer
) -> None:
    with tempfile.TemporaryDirectory(prefix="scrim-test-") as folder:
        settings = settings_for(
            create_database(postgres_server.url), valkey_server.url, Path(folder), processes=2
        )
        with running_service(settings) as running:
            wait_until(lambda: len(running.children()) == 2, timeout=30, what="two processes")
            for _ in range(20):
                assert running.get("/healthz").status_code == 200
            # Any process returns the sums over all processes.
            assert {_counted(running) for _ in range(5)} == {20}

            killed = min(running.children())
            os.kill(killed, signal.SIGKILL)
            wait_until(
                lambda: len(running.children() - {killed}) == 2, timeout=30, what="another one"
            )
            wait_until(lambda: _counted(running) >= 20, timeout=30, what="all counters")

            last = running.children()
            port = int(running.url.rpartition(":")[2])
            with pytest.raises(SystemExit):
                serve(settings, host="127.0.0.1", port=port)
        assert not any(psutil.pid_exists(pid) for pid in last)


def test_a_group_that_cannot_start_ends(
    postgres_server: PostgresServer, valkey_server: ValkeyServer
) -> None:
    with tempfile.TemporaryDirectory(prefix="scrim-test-") as folder:
        settings = settings_for(
            create_database(postgres_server.url),
            valkey_server.url,
            Path(folder),
            processes=2,
            database_url="postgresql://scrim_app:wrong@127.0.0.1:1/scrim",
        )
        argv = [sys.executable, "-m", "service", "serve", "--port", str(find_free_port())]
        variables = os.environ | _variables(settings)
        done = subprocess.run(argv, env=variables, capture_output=True, timeout=START_SECONDS)
    assert done.returncode != 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "kind", "piece"),
    [
        ("/v1/releases", "application/json", b"[],"),
        ("/console/sign-in", "application/x-www-form-urlencoded", b"a=&"),
    ],
)
def test_anonymous_bodies_do_not_hold_the_service_up(
    postgres_server: PostgresServer,
    valkey_server: ValkeyServer,
    path: str,
    kind: str,
    piece: bytes,
) -> None:
    body = piece * (32 * MEBIBYTE // len(piece))
    slowest, largest, attacks = 0.0, 0, 0
    stopping = threading.Event()

    def attack(url: str) -> None:
        nonlocal attacks
        host, port = url.removeprefix("http://").split(":")
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\n"
        message = f"{head}Content-Length: {len(body)}\r\n\r\n".encode()
        while not stopping.is_set():
            with suppress(OSError), socket.create_connection((host, int(port)), timeout=30) as sent:
                attacks += 1
                sent.sendall(message)
                sent.sendall(body)
                sent.recv(2**16)

    with tempfile.TemporaryDirectory(prefix="scrim-test-") as folder:
        settings = settings_for(
            create_database(postgres_server.url), valkey_server.url, Path(folder), processes=1
        )
        with running_service(settings) as running:
            threads = [
                threading.Thread(target=attack, args=(running.url,)) for _ in range(ATTACKERS)
            ]
            for thread in threads:
                thread.start()
            until = time.monotonic() + ATTACK_SECONDS
            try:
                with httpx.Client(base_url=running.url, timeout=60) as client:
                    while time.monotonic() < until:
                        start = time.monotonic()
                        assert client.get("/healthz").status_code == 200
                        slowest = max(slowest, time.monotonic() - start)
                        largest = max(largest, running.parent.memory_info().rss)
            finally:
                stopping.set()
                for thread in threads:
                    thread.join()
    print(f"{attacks} bodies; slowest {slowest:.3f} s, {largest / MEGABYTE:.0f} MB")
    assert attacks >= ATTACKERS
    assert slowest < 0.5
    assert largest < 300 * MEGABYTE
