"""Shared code of the embedded servers' tests."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest

from service.embedded import PostgresServer, wait_until
from tests.patience import PATIENCE

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change accounts")
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="relies on Linux")

SLEEPER = ["sleep", "1000"]

START_EVERYTHING = """
import json, os, sys
from pathlib import Path
import encodings.idna  # unreadable once the account is changed
from service.embedded import Command, PostgresServer, Supervisor, ValkeyServer

data_dir = Path(sys.argv[1])
if len(sys.argv) > 2:
    user, group, sys.executable = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    os.setgroups([])
    os.setgid(group)
    os.setuid(user)
postgres, valkey = PostgresServer(data_dir, durable=False), ValkeyServer(data_dir)
sleeper = Command(data_dir, "sleeper", argv=["sleep", "1000"])
with Supervisor(data_dir) as supervisor:
    for subject in (postgres, valkey, sleeper):
        supervisor.start(subject)
    pids = [subject.pid for subject in (postgres, valkey, sleeper)]
    print(json.dumps({"pids": pids, "url": postgres.url, "dsn": postgres.dsn}), flush=True)
    supervisor.run()
"""


def put_row(server: PostgresServer) -> None:
    """Commit a table with one row."""
    with psycopg.connect(server.dsn) as connection:
        connection.execute("DROP TABLE IF EXISTS kept")
        connection.execute("CREATE TABLE kept AS SELECT 1")


def count_rows(server: PostgresServer) -> int:
    """How many rows were kept."""
    with psycopg.connect(server.dsn) as connection:
        row = connection.execute("SELECT count(*) FROM kept").fetchone()
    assert row is not None
    return int(row[0])


def is_gone(pid: int) -> bool:
    """Whether the process has ended with all its threads, even if it is a zombie."""
    try:
        process = psutil.Process(pid)
        # Its parent does not see the end of a process before that of its last thread.
        return bool(process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1)
    except psutil.NoSuchProcess:
        return True


def wait_until_gone(pids: list[int]) -> None:
    """Wait until all of these processes have ended."""
    wait_until(lambda: all(is_gone(pid) for pid in pids), timeout=PATIENCE, what=f"end of {pids}")


def with_descendants(pids: list[int]) -> list[int]:
    """These processes and everything they started."""
    return pids + [
        child.pid for pid in pids for child in psutil.Process(pid).children(recursive=True)
    ]


def kill_from_outside(pid: int) -> None:
    """SIGKILL a process and wait until it has ended."""
    os.kill(pid, signal.SIGKILL)
    wait_until_gone([pid])


class RunningStack:
    """A Python process that supervises both servers and a command."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        """Wait for the line that says that everything is running."""
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the stack ended before everything was running"
        started = json.loads(line)
        self.process = process
        self.pids = with_descendants(started["pids"])
        self.dsn = started["dsn"]


@contextmanager
def running_stack(data_dir: Path, *account: str) -> Iterator[RunningStack]:
    """Run the stack in a process of its own, under another account if given; end it in any case."""
    process = subprocess.Popen(
        [sys.executable, "-c", START_EVERYTHING, str(data_dir), *account],
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield RunningStack(process)
        finally:
            process.kill()
