"""The whole service on one machine: servers, migrations, first key, workers and the HTTP service.

Everything is kept in one data folder. An address in SCRIM_DATABASE_URL, SCRIM_BROKER_URL or
SCRIM_STORAGE_URL replaces the embedded server or folder.
"""

import base64
import os
import secrets
import signal
import socket
import sys
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import Engine, make_url
from sqlalchemy.exc import OperationalError

from service.data.config import KEY_BYTES, Settings
from service.data.db import APP_ROLE, enable_app_login, migrate, open_engine
from service.data.keys import lock_lasting_admins
from service.data.ledger.anchor import advance_anchor
from service.data.ledger.anchor_store import open_anchor_store
from service.data.master_key import check_master_key
from service.data.work import unit_of_work
from service.embedded.errors import EmbeddedError
from service.embedded.folder import make_private_folder
from service.embedded.postgres import PostgresServer
from service.embedded.supervisor import Command, Supervisor
from service.embedded.valkey import ValkeyServer
from service.keys.service import create_key

# An interrupted job is resumed at the next start, so there is no need to wait for its end.
WORKER_GRACE_SECONDS = 10
# Longer than the service's own grace period for open responses.
SERVICE_GRACE_SECONDS = 25
READY_CHECK_SECONDS = 5
"""Longest wait for one answer of `/readyz`."""
CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")


@dataclass(frozen=True)
class RunningStack:
    """What a started stack reports: its address, its first key, and its commands."""

    url: str
    admin_key: str | None
    """The first admin key, if this start created it."""
    admin_key_path: Path
    commands: tuple[Command, ...]

    def ask_to_stop(self) -> None:
        """Ask all commands to stop at once; the supervisor then waits for each in turn."""
        for command in self.commands:
            if command.is_running():
                os.kill(command.pid, signal.SIGTERM)


class Stack:
    """Starts everything in order under a supervisor."""

    def __init__(self, data_dir: Path, port: int, environment: Mapping[str, str]) -> None:
        """Describe a stack in `data_dir` that answers on `port` of 127.0.0.1."""
        self._data_dir = data_dir.absolute()
        self._port = port
        self._environment = environment
        self._vault = SecretFolder(self._data_dir)

    @property
    def url(self) -> str:
        """Where the service answers."""
        return f"http://127.0.0.1:{self._port}"

    def start_servers(self, supervisor: Supervisor) -> dict[str, str]:
        """Start only Postgres and Valkey; returns an environment with their addresses."""
        keys = self._vault.keys(self._environment)
        environment = dict(self._environment) | keys | self._addresses(supervisor)
        # One job runs at a time; it must leave memory for the servers.
        environment.setdefault("SCRIM_WORKER_MEMORY_BYTES", str(memory_for_a_job()))
        # Only migrations need the owner's address.
        environment.pop("SCRIM_MIGRATION_URL", None)
        return environment

    def start(self, supervisor: Supervisor) -> RunningStack:
        """Start everything, and return once the service is ready."""
        self._require_free_port()
        environment = self.start_servers(supervisor)
        settings = Settings.model_validate(_without_prefix(environment))
        engine = open_engine(str(settings.database_url))
        try:
            signing_key = Ed25519PrivateKey.from_private_bytes(settings.signing_key_bytes)
            # Anchor before any account exists: later, a missing anchor means a rollback.
            anchor_store = open_anchor_store(settings.anchor_location)
            advance_anchor(engine, anchor_store, key=signing_key)
            check_master_key(engine, settings.master_key_bytes)
            admin_key = self._first_admin_key(engine)
        finally:
            engine.dispose()
        self._vault.show_public_key(signing_key)
        commands = self._commands(environment)
        for command in commands:
            supervisor.start(command)
        return RunningStack(self.url, admin_key, self._vault.admin_key_path, tuple(commands))

    def _addresses(self, supervisor: Supervisor) -> dict[str, str]:
        """The addresses of the service's dependencies; starts the embedded servers that are needed."""
        objects = (self._data_dir / "objects").as_uri()
        return {
            "SCRIM_DATABASE_URL": self._database(supervisor),
            "SCRIM_BROKER_URL": self._broker(supervisor),
            "SCRIM_STORAGE_URL": self._environment.get("SCRIM_STORAGE_URL") or objects,
            "SCRIM_DATA_DIR": str(self._data_dir),
        }

    def _database(self, supervisor: Supervisor) -> str:
        """The migrated database, as the application's role."""
        given = self._environment.get("SCRIM_DATABASE_URL")
        if given and make_url(given).username == APP_ROLE:
            return self._prepared(given, self._environment.get("SCRIM_MIGRATION_URL"))
        if given:
            return self._migrated(given)
        postgres = PostgresServer(self._data_dir)
        supervisor.start(postgres)
        return self._migrated(postgres.url)

    def _migrated(self, owner_url: str) -> str:
        """Migrate as the owner; the service itself never connects as the owner."""
        migrate(owner_url)
        app_url = enable_app_login(owner_url, password=self._vault.app_password())
        return app_url.render_as_string(hide_password=False)

    def _prepared(self, app_url: str, owner_url: str | None) -> str:
        """An external database, migrated if SCRIM_MIGRATION_URL is set."""
        if owner_url:
            migrate(owner_url)
            password = make_url(app_url).password
            if password is not None and not _can_log_in(app_url):
                enable_app_login(owner_url, password=password)
        return app_url

    def _broker(self, supervisor: Supervisor) -> str:
        if given := self._environment.get("SCRIM_BROKER_URL"):
            return given
        valkey = ValkeyServer(self._data_dir)
        supervisor.start(valkey)
        return valkey.url

    def _first_admin_key(self, engine: Engine) -> str | None:
        """Create the first admin key, unless there is an admin already."""
        with unit_of_work(engine) as work:
            if lock_lasting_admins(work.session):
                return None
            _, secret = create_key(work.session, "first admin", ["admin"])
            # Before the commit: a valid key is never lost. An invalid one is replaced at the next start.
            write_secret(self._vault.admin_key_path, secret)
        return secret

    def _commands(self, environment: Mapping[str, str]) -> list[Command]:
        """The commands that run beside the servers: workers, the reaper and then the service."""
        return [
            # A worker for each queue: uploads and questions never wait for a release.
            self._command("jobs", ["worker", "--queue", "jobs"], environment),
            self._command("ingest", ["worker", "--queue", "ingest"], environment),
            self._command("questions", ["worker", "--queue", "fast"], environment),
            self._command("reaper", ["worker.reaper"], environment),
            self._command(
                "service",
                ["service", "serve", "--port", str(self._port)],
                environment,
                is_ready=self._is_ready,
                grace=SERVICE_GRACE_SECONDS,
            ),
        ]

    def _command(
        self,
        name: str,
        module: list[str],
        environment: Mapping[str, str],
        *,
        is_ready: Callable[[], bool] = lambda: True,
        grace: float = WORKER_GRACE_SECONDS,
    ) -> Command:
        return Command(
            self._data_dir,
            name,
            # Keep the working directory off the path: it may contain modules with our names.
            argv=[sys.executable, "-P", "-m", *module],
            env=environment,
            is_ready=is_ready,
            grace=grace,
        )

    def _is_ready(self) -> bool:
        # A proxy could not reach this machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"{self.url}/readyz", timeout=READY_CHECK_SECONDS):
                return True
        except (URLError, OSError):
            return False

    def _require_free_port(self) -> None:
        with socket.socket() as probe:
            # As the service does: ignore connections that have just closed.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", self._port))
            except OSError as error:
                raise EmbeddedError(
                    f"Port {self._port} cannot be used ({error.strerror}): choose another with "
                    "--port."
                ) from None


class SecretFolder:
    """The secrets of an installation: created once, readable by their owner only."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self.admin_key_path = data_dir / "admin.key"

    def keys(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Master and signing key: from the environment, else from the folder."""
        return {
            name: environment.get(name) or self._keep(file, _random_key)
            for name, file in (
                ("SCRIM_MASTER_KEY", "master.key"),
                ("SCRIM_SIGNING_KEY", "signing.key"),
            )
        }

    def app_password(self) -> str:
        """The password of the application's role."""
        return self._keep("database.password", lambda: secrets.token_hex(24), is_replaceable=True)

    def show_public_key(self, signing_key: Ed25519PrivateKey) -> None:
        """Write the public key that readers need to check certificates."""
        public = base64.b64encode(signing_key.public_key().public_bytes_raw()).decode()
        (self._data_dir / "signing.pub").write_text(public + "\n")

    def _keep(self, name: str, make: Callable[[], str], *, is_replaceable: bool = False) -> str:
        """Return the secret in a file; create it the first time."""
        path = self._data_dir / name
        if not path.exists():
            if not is_replaceable and (self._data_dir / "postgres").exists():
                raise EmbeddedError(
                    f"{path} is missing. What was encrypted or signed with it cannot be used without "
                    "it: restore it from a backup."
                )
            write_secret(path, make())
        return path.read_text().strip()


def write_secret(path: Path, secret: str) -> None:
    """Write a file atomically that only its owner can read."""
    make_private_folder(path.parent)
    draft = path.with_suffix(path.suffix + ".new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secret + "\n")
        file.flush()
        os.fsync(descriptor)
    draft.replace(path)


def memory_for_a_job() -> int:
    """Three quarters of this machine's memory, or of what its container may use."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no container, or one without a limit
        total = min(total, int(CONTAINER_LIMIT.read_text()))
    return total * 3 // 4


def _random_key() -> str:
    return base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def _can_log_in(url: str) -> bool:
    engine = open_engine(url)
    try:
        engine.connect().close()
    except OperationalError:
        return False
    finally:
        engine.dispose()
    return True


def _without_prefix(environment: Mapping[str, str]) -> dict[str, str]:
    """Settings by the names of their fields."""
    prefix = "SCRIM_"
    return {
        name.removeprefix(prefix).lower(): value
        for name, value in environment.items()
        if name.startswith(prefix)
    }
