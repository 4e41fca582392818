"""An embedded Valkey server (Redis protocol), with a password, on 127.0.0.1 only."""

import signal
from contextlib import ExitStack
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from service.embedded.binaries import find_valkey, runnable_by
from service.embedded.folder import keep_secret, make_private_folder
from service.embedded.process import Child
from service.embedded.server import Server, server_environment

PING_SECONDS = 1
"""Longest wait for the answer to one ping."""


class ValkeyServer(Server):
    """Valkey in `data_dir/valkey`; when durable, it keeps an append-only file."""

    name = "valkey"
    _stop_signal = signal.SIGTERM
    # Every write is already in the append-only file, so a kill loses nothing.
    _death_signal = signal.SIGKILL

    _program: Path

    @property
    def url(self) -> str:
        """Address for Redis clients and Celery."""
        return f"redis://:{self._password()}@127.0.0.1:{self.port}/0"

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _password(self) -> str:
        return keep_secret(self.folder / "password")

    def _prepare(self, held: ExitStack) -> None:
        program = find_valkey()
        copied = self.folder / "binaries"
        folder = held.enter_context(runnable_by(self._account, program.parent, record=copied))
        self._program = folder / program.name
        make_private_folder(self._data, self._account)
        self._require_owner(self._data)

    def _spawn(self, port: int) -> Child:
        return Child(
            self.name,
            # Configured through standard input: other users can read the arguments of a process,
            # and the server's account may not be able to reach a file of ours.
            [str(self._program), "-"],
            log_path=self._log_path,
            env=server_environment(),
            folder=self._data,
            account=self._account,
            death_signal=self._death_signal,
            input_text=self._configuration(port),
        )

    def _configuration(self, port: int) -> str:
        settings = {
            "bind": "127.0.0.1",
            "port": port,
            "requirepass": self._password(),
            "dir": "./",
            "daemonize": "no",
            "appendonly": "yes" if self.durable else "no",
            "appendfsync": "everysec",
            # The append-only file is enough: no snapshots.
            "save": '""',
            # When memory is full, refuse new messages and never evict old ones.
            "maxmemory-policy": "noeviction",
        }
        return "".join(f"{name} {value}\n" for name, value in settings.items())

    def _is_ready(self, child: Child, port: int) -> bool:
        client = redis.Redis(
            host="127.0.0.1",
            port=port,
            password=self._password(),
            socket_timeout=PING_SECONDS,
            retry=Retry(NoBackoff(), 0),
        )
        try:
            return bool(client.ping())
        except (redis.ConnectionError, redis.TimeoutError):
            return False
        finally:
            client.close()
