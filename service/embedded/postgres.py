"""An embedded PostgreSQL server in a folder, reachable with a password on 127.0.0.1 only."""

import os
import shutil
import signal
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import psycopg

from service.embedded.binaries import find_postgres, runnable_by
from service.embedded.errors import EmbeddedError
from service.embedded.folder import keep_secret, make_private_folder
from service.embedded.process import Child, own_account, wait_until
from service.embedded.server import Server, server_environment

SUPERUSER = "scrim_owner"
DATABASE = "scrim"
INITDB_SECONDS = 120
"""Longest wait for the creation of a cluster, also on a slow disk."""
FORMER_SERVER_SECONDS = 10
"""Longest wait for the end of processes that were killed."""

# Linux only; on other systems Postgres itself must detect leftover processes.
PROC = Path("/proc")

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    # No socket file: its path would have to be short, and TCP asks for the password as well.
    "unix_socket_directories": "",
    # Service processes, one per core, use up to 20 connections each; an unused one costs little.
    "max_connections": "500",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # The log is plain text, so neither statements nor the values of rows may reach it.
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
}

# Commits stay synchronous: they cost little without fsync, and a killed server still keeps them.
THROWAWAY_SETTINGS = {"fsync": "off", "full_page_writes": "off"}


class PostgresServer(Server):
    """PostgreSQL in `data_dir/postgres`, with the database `scrim` and one superuser."""

    name = "postgres"
    # Fast shutdown: sessions are ended and everything is written out.
    _stop_signal = signal.SIGINT
    # Immediate shutdown: the server ends its children within seconds and recovers at the next start.
    _death_signal = signal.SIGQUIT

    _bin: Path

    @property
    def url(self) -> str:
        """Address for SQLAlchemy."""
        return f"postgresql+psycopg://{self._location(DATABASE)}"

    @property
    def dsn(self) -> str:
        """Address for psycopg and other clients of libpq."""
        return f"postgresql://{self._location(DATABASE)}"

    def kill(self) -> None:
        """End the server and all its processes without warning, as a power cut would."""
        # The main process first: it would treat the death of a child as a crash and recover from it.
        if self.is_running():
            os.kill(self.pid, signal.SIGKILL)
        _end(self._processes())
        super().kill()

    @property
    def _cluster(self) -> Path:
        return self.folder / "cluster"

    @property
    def _password_file(self) -> Path:
        return self.folder / "password"

    def _location(self, database: str) -> str:
        password = self._password_file.read_text().strip()
        return f"{SUPERUSER}:{password}@127.0.0.1:{self.port}/{database}"

    def _prepare(self, held: ExitStack) -> None:
        copied = self.folder / "binaries"
        self._bin = held.enter_context(runnable_by(self._account, find_postgres(), record=copied))
        if not self._cluster.exists():
            self._create_cluster()
        self._require_owner(self._cluster)
        if not self._password_file.exists():
            raise EmbeddedError(f"{self._password_file} is missing: restore it from a backup.")
        self._end_former_server()

    def _create_cluster(self) -> None:
        """Initialise under another name first, so that a half-made cluster is never used."""
        draft = self.folder / "cluster.new"
        shutil.rmtree(draft, ignore_errors=True)
        make_private_folder(draft, self._account)
        keep_secret(self._password_file, self._account)
        with self._password_file.open("rb") as password:
            # An open file, because the server's account may not be able to reach its path.
            self._run_initdb(draft, password.fileno())
        draft.rename(self._cluster)

    def _run_initdb(self, cluster: Path, password_descriptor: int) -> None:
        initdb = Child(
            "initdb",
            [
                str(self._bin / "initdb"),
                f"--pgdata={self._name_of(cluster)}",
                f"--username={SUPERUSER}",
                "--auth=scram-sha-256",
                f"--pwfile=/dev/fd/{password_descriptor}",
                "--encoding=UTF8",
                # Sorting by bytes never changes, unlike the sort orders of system libraries.
                "--locale=C",
                "--data-checksums",
                *([] if self.durable else ["--no-sync"]),
            ],
            log_path=self._log_path,
            env=server_environment(),
            folder=cluster,
            account=self._account,
            pass_fds=[password_descriptor],
        )
        initdb.wait_until_done(timeout=INITDB_SECONDS)

    def _spawn(self, port: int) -> Child:
        settings = SETTINGS | {"port": str(port), "cluster_name": self._cluster_name()}
        if not self.durable:
            settings |= THROWAWAY_SETTINGS
        options = [f"--{name}={value}" for name, value in settings.items()]
        return Child(
            self.name,
            [str(self._bin / "postgres"), "-D", self._name_of(self._cluster), *options],
            log_path=self._log_path,
            env=server_environment(),
            folder=self._cluster,
            account=self._account,
            death_signal=self._death_signal,
        )

    def _is_ready(self, child: Child, port: int) -> bool:
        """Read the status that the server writes to its pid file, as `pg_ctl` does."""
        lines = self._postmaster_file()
        if len(lines) < 8:
            return False
        return (lines[0], lines[3], lines[7].strip()) == (str(child.pid), str(port), "ready")

    def _after_start(self) -> None:
        """Create our database the first time."""
        maintenance = f"postgresql://{self._location('postgres')}"
        with psycopg.connect(maintenance, autocommit=True) as connection:
            names = connection.execute("SELECT datname FROM pg_database").fetchall()
            if (DATABASE,) not in names:
                connection.execute(f"CREATE DATABASE {DATABASE}")

    def _name_of(self, folder: Path) -> str:
        """The path of this folder for a process that is started inside it.

        The folder may lie below one that `nobody` cannot enter, such as /root. A process inherits
        its working directory anyway, so the path of that directory in /proc always works.
        """
        return str(folder) if self._account == own_account() else "/proc/self/cwd"

    def _cluster_name(self) -> str:
        """A name that exactly the processes of this folder show in their titles."""
        status = self._cluster.stat()
        # Of fixed width, so that no name is a prefix of another.
        return f"scrim-{status.st_dev:016x}-{status.st_ino:016x}"

    def _postmaster_file(self) -> list[str]:
        try:
            return (self._cluster / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _processes(self) -> list[int]:
        """All processes that serve this folder, whoever started them (on Linux only)."""
        name = self._cluster_name()
        return [pid for pid in _postgres_processes(self._account.uid) if name in _title(pid)]

    def _end_former_server(self) -> None:
        """End processes left by a killed predecessor: we hold the lock, so no other instance owns them."""
        # A busy session notices the death of its server only after its query, so end it here.
        _send(signal.SIGQUIT, self._processes())
        with suppress(TimeoutError):
            _await_end_of(self._processes())
        _end(self._processes())
        self._forget_dead_postmaster()

    def _forget_dead_postmaster(self) -> None:
        """Delete a stale postmaster.pid that is empty or whose process id belongs to another program.

        Postgres would fail on the first and take the second for a running server. This is common in
        a container, where process ids start over at each boot.
        """
        first_line = "".join(self._postmaster_file()[:1])
        serves = first_line.isdigit() and "postgres" in _title(int(first_line))
        if PROC.exists() and not serves:
            (self._cluster / "postmaster.pid").unlink(missing_ok=True)


def _postgres_processes(uid: int) -> list[int]:
    """Process ids of all Postgres processes of one user."""
    found = []
    for entry in PROC.glob("[0-9]*"):
        with suppress(OSError):
            program = _title(int(entry.name)).split(" ")[0].rstrip(":")
            if entry.stat().st_uid == uid and Path(program).name == "postgres":
                found.append(int(entry.name))
    return found


def _title(pid: int) -> str:
    """The command line of a process; empty if it has ended."""
    try:
        return (PROC / str(pid) / "cmdline").read_text(errors="replace").replace("\0", " ")
    except OSError:
        return ""


def _end(processes: Sequence[int]) -> None:
    """SIGKILL these processes and wait until they have ended."""
    _send(signal.SIGKILL, processes)
    _await_end_of(processes)


def _send(number: signal.Signals, processes: Sequence[int]) -> None:
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _await_end_of(processes: Sequence[int]) -> None:
    wait_until(
        lambda: not any(_title(pid) for pid in processes),
        timeout=FORMER_SERVER_SECONDS,
        what=f"end of Postgres processes {list(processes)}",
    )
