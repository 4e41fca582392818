"""Child processes that never outlive their parent, and helpers to start them."""

import atexit
import os
import pwd
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from service.data import parent_death
from service.embedded.errors import EmbeddedError, StartFailedError

EXIT_POLL_SECONDS = 0.01
"""Interval between two looks at a condition."""
LONGEST_LOG_BYTES = 10_000_000
"""Size from which a log is renamed at the next start."""
SHOWN_OUTPUT_BYTES = 2_000
"""Largest part of the output of a failed program that an error shows."""

# Below the ephemeral ports: a client that reconnects while a server restarts could otherwise be
# assigned the server's own port.
SERVER_PORTS = range(20_000, 32_000)


@dataclass(frozen=True)
class SystemAccount:
    """A user and group that a child runs as."""

    uid: int
    gid: int

    def can_enter(self, folder: Path) -> bool:
        """Whether every folder from the root down to this one lets the account through."""
        resolved = folder.resolve()
        return all(self._may_pass(step) for step in (resolved, *resolved.parents))

    def _may_pass(self, folder: Path) -> bool:
        status = folder.stat()
        if status.st_uid == self.uid:
            return bool(status.st_mode & 0o100)
        if status.st_gid == self.gid:
            return bool(status.st_mode & 0o010)
        return bool(status.st_mode & 0o001)


def own_account() -> SystemAccount:
    """The account of this process."""
    return SystemAccount(os.geteuid(), os.getegid())


def server_account() -> SystemAccount:
    """The account for servers: our own, or `nobody` when we are root (Postgres refuses root)."""
    if os.geteuid() != 0:
        return own_account()
    if sys.platform != "linux":
        raise EmbeddedError("The embedded servers do not run as root here: use an ordinary user.")
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        raise EmbeddedError(
            "The embedded servers do not run as root, and this machine has no user `nobody`: "
            "add one, or use an ordinary user."
        ) from None
    return SystemAccount(nobody.pw_uid, nobody.pw_gid)


class Child:
    """A started program in a session of its own, with its output in a log file."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        log_path: Path,
        env: Mapping[str, str] | None = None,
        folder: Path | None = None,
        account: SystemAccount | None = None,
        death_signal: signal.Signals = signal.SIGKILL,
        input_text: str = "",
        pass_fds: Sequence[int] = (),
    ) -> None:
        """Start the program; it receives `death_signal` when this process dies, however it dies."""
        _require_main_thread()
        self.name = name
        self._log_path = log_path
        _rotate(log_path)
        with log_path.open("ab") as log:
            self._log_start = log.tell()
            self._popen = subprocess.Popen(
                _with_death_signal(argv, account or own_account(), death_signal),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=env,
                umask=0o077,
                # Only this process gets Ctrl-C from the terminal: it stops the children in order.
                start_new_session=True,
                pass_fds=pass_fds,
            )
        self._gone = False
        self._send(input_text)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code (minus the signal's number if a signal ended it), or None while it runs."""
        return self._popen.returncode

    def is_running(self) -> bool:
        """Whether the program still runs."""
        if self._popen.poll() is None:
            return True
        self._end_group()
        return False

    def output(self) -> str:
        """The end of what it wrote since it was started."""
        with self._log_path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(self._log_start, size - SHOWN_OUTPUT_BYTES))
            return log.read().decode(errors="replace").strip()

    def wait_until_ready(self, is_ready: Callable[[], bool], *, timeout: float) -> None:
        """Return once `is_ready()`; raise with its output if it ends or is not ready in time."""
        deadline = time.monotonic() + timeout
        while not is_ready():
            if not self.is_running():
                raise self._failure(f"ended with code {self.exit_code} before it was ready")
            if time.monotonic() > deadline:
                raise self._failure(f"was not ready within {timeout:g} seconds")
            time.sleep(EXIT_POLL_SECONDS)

    def wait_until_done(self, *, timeout: float) -> None:
        """Return once it has ended successfully; raise with its output otherwise."""
        try:
            self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise self._failure(f"did not finish within {timeout:g} seconds") from None
        self._end_group()
        if self.exit_code != 0:
            raise self._failure(f"ended with code {self.exit_code}")

    def stop(self, stop_signal: signal.Signals = signal.SIGTERM, *, grace: float = 10) -> None:
        """Ask it to end, wait up to `grace` seconds, then kill it."""
        if self.is_running():
            self._popen.send_signal(stop_signal)
            with suppress(subprocess.TimeoutExpired):
                self._popen.wait(grace)
        self.kill()

    def kill(self) -> None:
        """Kill it and its process group."""
        self._end_group()
        self._popen.wait()

    def _send(self, text: str) -> None:
        """Write its standard input and close it; a program that ended early is detected later."""
        assert self._popen.stdin is not None
        with suppress(BrokenPipeError), self._popen.stdin as pipe:
            pipe.write(text.encode())

    def _end_group(self) -> None:
        """SIGKILL its process group, only once: later the id may belong to another group."""
        if not self._gone:
            self._gone = True
            # macOS raises PermissionError for a group whose processes have all ended.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def _failure(self, what_happened: str) -> StartFailedError:
        shown = self.output() or "(no output)"
        return StartFailedError(f"{self.name} {what_happened}; see {self._log_path}:\n{shown}")


def _with_death_signal(
    argv: Sequence[str], account: SystemAccount, death_signal: signal.Signals
) -> list[str]:
    """The command that runs `argv` as `account` and dies with us, where the system supports it."""
    if sys.platform != "linux":
        return list(argv)
    identifiers = (os.getpid(), int(death_signal), account.uid, account.gid)
    return [sys.executable, "-I", "-S", parent_death.__file__, *map(str, identifiers), *argv]


def _require_main_thread() -> None:
    """Refuse other threads: on Linux a child dies with the *thread* that started it."""
    if threading.current_thread() is not threading.main_thread():
        raise EmbeddedError("Start embedded servers and commands from the main thread.")


def _rotate(log_path: Path) -> None:
    """Rename a long log, so that the logs of one program stay within two files."""
    log_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if log_path.exists() and log_path.stat().st_size > LONGEST_LOG_BYTES:
        log_path.replace(log_path.with_suffix(".log.1"))


def find_free_port() -> int:
    """A port of 127.0.0.1 that is free now."""
    for port in random.sample(SERVER_PORTS, 100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise EmbeddedError(f"No free port between {SERVER_PORTS.start} and {SERVER_PORTS.stop}.")


def wait_until(condition: Callable[[], bool], *, timeout: float, what: str) -> None:
    """Poll until the condition holds; raise TimeoutError that names `what`."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout:g} seconds")
        time.sleep(EXIT_POLL_SECONDS)


def at_exit(action: Callable[[], None]) -> Callable[[], None]:
    """Run `action` when this process exits (not a fork of it); call the result to cancel that."""
    owner = os.getpid()

    def act_if_ours() -> None:
        if os.getpid() == owner:
            action()

    atexit.register(act_if_ours)
    return lambda: atexit.unregister(act_if_ours)
