"""Run the embedded stack as a separate program; this package imports none of it."""

import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import httpx

from scrim.errors import StackFailed

STACK_READY_SECONDS = 120
"""Longest wait for the start of the stack; the first start creates a database."""
STACK_STOP_SECONDS = 90
"""Longest wait for an orderly stop of all parts."""
STACK_POLL_SECONDS = 0.1
"""Interval between two looks at a stack that starts."""
SHOWN_LOG_CHARACTERS = 3000
"""Largest part of the output of a failed stack that an error shows."""

SERVER = "scrim-server"
"""The package that holds the service, its workers and the embedded servers."""

# Below the ephemeral ports, which the kernel assigns to outgoing connections.
PORTS = range(20_000, 32_000)


def stack_command(data_dir: Path, port: int, *options: str) -> list[str]:
    """The command that starts the stack."""
    try:
        distribution(SERVER)
    except PackageNotFoundError:
        raise StackFailed(
            f"the package {SERVER} is not installed, and it holds the service: pip install {SERVER}"
        ) from None
    # Keep the working directory off the path: it might contain a folder called `service`.
    program = [sys.executable, "-P", "-m", "service.embedded"]
    return [*program, "up", "--data-dir", str(data_dir), "--port", str(port), *options]


def become_stack(data_dir: Path, port: int) -> None:
    """Replace this process by the stack, so that signals reach the stack directly."""
    command = stack_command(data_dir, port)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(command[0], command)


class LocalStack:
    """A stack that runs during a `with` block, and ends with this process, however it ends."""

    def __init__(self, data_dir: Path, *, port: int | None = None) -> None:
        self.data_dir = data_dir
        self._port = port or find_free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None

    @property
    def url(self) -> str:
        """Where the service answers."""
        return f"http://127.0.0.1:{self._port}"

    def admin_key(self) -> str:
        """The first key."""
        return (self.data_dir / "admin.key").read_text().strip()

    def public_key(self) -> str:
        """The key that signs certificates."""
        return (self.data_dir / "signing.pub").read_text().strip()

    def __enter__(self) -> Self:
        """Start the stack and wait until it is ready."""
        self._output = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            stack_command(self.data_dir, self._port, "--until-input-ends"),
            # When this process ends, the stack's input closes, and it stops cleanly.
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            # Only this process gets Ctrl-C from the terminal.
            start_new_session=True,
            env=_without_settings(),
        )
        try:
            self._await_ready()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the stack and wait for its end."""
        self._end()

    def _await_ready(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + STACK_READY_SECONDS
        while not self._is_ready():
            if self._process.poll() is not None:
                raise StackFailed(f"the embedded stack did not start:\n{self._last_words()}")
            if time.monotonic() > deadline:
                raise StackFailed(f"the stack was not ready in {STACK_READY_SECONDS} seconds")
            time.sleep(STACK_POLL_SECONDS)

    def _is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", timeout=5, trust_env=False).is_success
        except httpx.TransportError:
            return False

    def _last_words(self) -> str:
        assert self._output is not None
        self._output.seek(0)
        return self._output.read().decode(errors="replace").strip()[-SHOWN_LOG_CHARACTERS:]

    def _end(self) -> None:
        assert self._process is not None and self._process.stdin is not None
        assert self._output is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STACK_STOP_SECONDS)
        if self._process.poll() is None:
            # Its children die with it.
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        self._output.close()


def _without_settings() -> dict[str, str]:
    """Our environment without settings of Scrim, which may name a production database."""
    return {name: value for name, value in os.environ.items() if not name.startswith("SCRIM_")}


def find_free_port() -> int:
    """Find a free port on this machine."""
    for port in random.sample(PORTS, 100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise StackFailed(f"no free port between {PORTS.start} and {PORTS.stop}")
