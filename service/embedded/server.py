"""Base class of the embedded Postgres and Valkey: start, stop, kill, and a stable port."""

import os
import signal
from abc import ABC, abstractmethod
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from service.embedded.errors import EmbeddedError, StartFailedError
from service.embedded.folder import locked, make_private_folder
from service.embedded.process import Child, at_exit, find_free_port, server_account

READY_SECONDS = 60
"""Longest wait for a server that starts; after a crash it first recovers."""
STOP_SECONDS = 30
"""Longest wait for a clean stop, before the server is killed."""
PORT_ATTEMPTS = 5
"""How many free ports are tried, as another program may take one meanwhile."""


class Server(ABC):
    """A server on 127.0.0.1 that keeps its data in `data_dir/<name>` and dies with us.

    Start it from the main thread. The port is chosen at the first start and kept by later ones of
    the same object, so `url` stays valid when a supervisor restarts the server.
    """

    name: ClassVar[str]
    _stop_signal: ClassVar[signal.Signals]
    _death_signal: ClassVar[signal.Signals]

    def __init__(self, data_dir: Path, *, durable: bool = True) -> None:
        """Describe a server; `durable=False` trades safety of the data for speed, for tests."""
        self.data_dir = data_dir.absolute()
        self.folder = self.data_dir / self.name
        self.durable = durable
        self._account = server_account()
        self._port: int | None = None
        self._child: Child | None = None
        self._held = ExitStack()

    def start(self) -> None:
        """Start the server and return once it answers."""
        if self.is_running():
            raise EmbeddedError(f"{self.name} runs already")
        self._held.close()
        make_private_folder(self.data_dir)
        with ExitStack() as held:
            held.enter_context(locked(self.folder))
            self._prepare(held)
            self._child = self._launch()
            held.callback(self._end_child)
            held.callback(at_exit(self.stop))
            self._after_start()
            self._held = held.pop_all()

    def stop(self) -> None:
        """Stop the server cleanly; its data stays."""
        self._held.close()

    def kill(self) -> None:
        """Kill the server, as a crash would."""
        if self._child is not None:
            self._child.kill()
        self._held.close()

    def is_running(self) -> bool:
        """Whether the server's main process runs."""
        return self._child is not None and self._child.is_running()

    @property
    def pid(self) -> int:
        """Process id of the server's main process."""
        if self._child is None:
            raise EmbeddedError(f"{self.name} was not started")
        return self._child.pid

    @property
    def port(self) -> int:
        """The port on 127.0.0.1, known once the server was started."""
        if self._port is None:
            raise EmbeddedError(f"{self.name} was not started")
        return self._port

    @property
    @abstractmethod
    def url(self) -> str:
        """Address with user and password for clients."""

    def __enter__(self) -> Self:
        """Start the server."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the server."""
        self.stop()

    @abstractmethod
    def _prepare(self, held: ExitStack) -> None:
        """Prepare the folder for the server; resources pushed on `held` are released at its end."""

    @abstractmethod
    def _spawn(self, port: int) -> Child:
        """Start the server process on this port."""

    @abstractmethod
    def _is_ready(self, child: Child, port: int) -> bool:
        """Whether this process answers on this port."""

    def _after_start(self) -> None:  # noqa: B027, an optional step
        """Do what can only be done once the server answers."""

    def _launch(self) -> Child:
        """Start the process on our port; the first time, on any port that is free."""
        for _ in range(PORT_ATTEMPTS):
            port = self._port or find_free_port()
            child = self._spawn(port)
            try:
                self._await_ready(child, port)
            except StartFailedError:
                # Another program took the port between our check and the server's start.
                if self._port is None and "Address already in use" in child.output():
                    continue
                raise
            self._port = port
            return child
        raise StartFailedError(f"{self.name} found no free port in {PORT_ATTEMPTS} attempts")

    def _await_ready(self, child: Child, port: int) -> None:
        try:
            child.wait_until_ready(lambda: self._is_ready(child, port), timeout=READY_SECONDS)
        except BaseException:
            child.kill()
            raise

    def _end_child(self) -> None:
        if self._child is not None:
            self._child.stop(self._stop_signal, grace=STOP_SECONDS)

    @property
    def _log_path(self) -> Path:
        return self.data_dir / "logs" / f"{self.name}.log"

    def _require_owner(self, folder: Path) -> None:
        """Refuse data written by another account; the server's own error would be less clear."""
        owner = folder.stat().st_uid
        if owner != self._account.uid:
            raise EmbeddedError(
                f"{folder} belongs to user {owner}, but {self.name} runs as user "
                f"{self._account.uid} here: use the account that created it."
            )


def server_environment() -> dict[str, str]:
    """A minimal environment: our own may hold secrets, and PG* variables would change Postgres."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "PATH") if name in os.environ}
    return kept | {"LC_ALL": "C", "TZ": "UTC"}
