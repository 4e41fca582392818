"""Tests of both embedded servers, for root and for ordinary users."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from service.embedded import EmbeddedError, FolderInUseError, PostgresServer, ValkeyServer
from service.embedded.binaries import find_postgres
from service.embedded.process import SystemAccount, find_free_port
from tests.patience import PATIENCE

from .support import needs_linux, needs_root, put_row, running_stack, wait_until_gone


class TestBothServers:
    """Tests of both servers."""

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

    def test_takes_another_port_if_the_first_is_taken(
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
        if not SystemAccount(nobody.pw_uid, nobody.pw_gid).can_enter(Path(__file__).parent):
            pytest.skip("the project lies where only root can go")
        os.chown(data_dir, nobody.pw_uid, nobody.pw_gid)
        account = (str(nobody.pw_uid), str(nobody.pw_gid), python_of_nobody())
        with running_stack(data_dir, *account) as stack:
            processes = [psutil.Process(pid) for pid in stack.pids]
            assert {process.uids().real for process in processes} == {nobody.pw_uid}
            stack.process.send_signal(signal.SIGINT)
            assert stack.process.wait(PATIENCE) == 0
            wait_until_gone(stack.pids)


def python_of_nobody() -> str:
    """Any Python that `nobody` can run: ours may lie in root's home."""
    for candidate in (sys.executable, "/usr/local/bin/python3", "/usr/bin/python3"):
        with suppress(OSError):
            subprocess.run([candidate, "--version"], user="nobody", check=True)
            return candidate
    pytest.skip("nobody can run no Python here")
