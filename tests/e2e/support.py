"""The real stack as a user runs it: a process that is started, asked and interrupted."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psutil

from scrim import Client
from scrim.stack import find_free_port, stack_command
from tests.patience import PATIENCE

SCRIM = (sys.executable, "-m", "scrim.cli")


def environment(**changes: str) -> dict[str, str]:
    """Our environment, with only the given settings of Scrim. There is one service process, which starts
    faster than several; tests/service/api/test_processes.py tries several.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SCRIM_")}
    return kept | {"SCRIM_PROCESSES": "1"} | changes


@contextmanager
def scratch() -> Iterator[Path]:
    """A temporary folder: servers fill many megabytes."""
    with tempfile.TemporaryDirectory(prefix="scrim-test-") as folder:
        yield Path(folder)


class Up:
    """`scrim up` in a data folder."""

    def __init__(
        self, data_dir: Path, settings: Mapping[str, str], *, scrim: Sequence[str]
    ) -> None:
        self.data_dir = data_dir
        self.port = find_free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._settings = settings
        self._scrim = scrim
        self.process: subprocess.Popen[str]

    def start(self) -> None:
        """Run the command, and return once the service is ready."""
        self.process = subprocess.Popen(
            [*self._scrim, "up", "--data-dir", str(self.data_dir), "--port", str(self.port)],
            env=environment(**self._settings),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        wait_until(lambda: self.is_ready() or self.process.poll() is not None, seconds=PATIENCE)
        assert self.process.poll() is None, self.process.communicate()

    def kill(self) -> str:
        """Kill the main process and wait for the end of all others; returns what was printed."""
        everything = self.processes()
        self.process.kill()
        wait_until(lambda: not any(map(is_alive, everything)), seconds=PATIENCE)
        return self.process.communicate(timeout=PATIENCE)[0]

    def is_ready(self) -> bool:
        """Whether the service says that it is ready."""
        try:
            return httpx.get(f"{self.url}/readyz", timeout=5, trust_env=False).is_success
        except httpx.TransportError:
            return False

    def admin(self) -> Client:
        """A client with the first admin key."""
        return Client(self.url, (self.data_dir / "admin.key").read_text().strip())

    def processes(self) -> list[psutil.Process]:
        """Everything that the stack consists of."""
        main = psutil.Process(self.process.pid)
        return [main, *main.children(recursive=True)]

    def child(self, *words: str) -> psutil.Process:
        """The process that was started with these words."""
        for process in self.processes()[1:]:
            with suppress(psutil.Error):
                if set(words) <= set(process.cmdline()):
                    return process
        raise LookupError(words)

    def interrupt(self) -> tuple[int, str]:
        """Press Ctrl-C; returns the exit code and everything that was printed."""
        everything = self.processes()
        self.process.send_signal(signal.SIGINT)
        printed, _ = self.process.communicate(timeout=PATIENCE)
        assert [each for each in everything if is_alive(each)] == []
        return self.process.returncode, printed


@contextmanager
def running(data_dir: Path, scrim: Sequence[str] = SCRIM, **settings: str) -> Iterator[Up]:
    """Start a stack, wait until it is ready, and stop all of it in the end."""
    up = Up(data_dir, settings, scrim=scrim)
    try:
        up.start()
        yield up
    finally:
        if up.process.poll() is None:
            up.process.terminate()
        up.process.communicate(timeout=PATIENCE)


def try_to_start(data_dir: Path, port: int, **settings: str) -> subprocess.CompletedProcess[str]:
    """Try to start a stack that should not start."""
    return subprocess.run(
        stack_command(data_dir, port),
        env=environment(**settings),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def run_beside(data_dir: Path, *command: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a command beside the servers of a folder, without the rest of the stack."""
    beside = (sys.executable, "-m", "service.embedded", "run", "--data-dir", str(data_dir), "--")
    return subprocess.run(
        [*beside, *command],
        env=environment(**settings),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def is_alive(process: psutil.Process) -> bool:
    """Whether a process still runs; a zombie has ended."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def wait_until(condition: Callable[[], bool], *, seconds: float) -> None:
    """Poll until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} seconds"
        time.sleep(0.05)
