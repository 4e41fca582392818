"""`scrim up`: one folder for everything, servers of others if wanted, nothing left behind."""

import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url

from scrim.stack import find_free_port, stack_command
from service.data.db import APP_ROLE
from service.embedded import PostgresServer, ValkeyServer
from tests.e2e.support import Up, environment, is_alive, running, scratch, wait_until
from tests.patience import PATIENCE

pytestmark = pytest.mark.e2e

SECRETS = ("master.key", "signing.key", "database.password", "admin.key")


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder."""
    with scratch() as path:
        yield path


@pytest.fixture(scope="module")
def stack() -> Iterator[Up]:
    """A stack that several tests use."""
    with scratch() as path, running(path / "deep" / "data") as up:
        yield up


def start(data_dir: Path, port: int, **settings: str) -> subprocess.CompletedProcess[str]:
    """Try to start a stack that should not start."""
    return subprocess.run(
        stack_command(data_dir, port),
        env=environment(**settings),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


class TestRunning:
    def test_secrets_are_for_the_owner_alone(self, stack: Up) -> None:
        for name in SECRETS:
            assert stat.S_IMODE((stack.data_dir / name).stat().st_mode) == 0o600
        assert stat.S_IMODE(stack.data_dir.stat().st_mode) == 0o700

    def test_the_first_key_makes_populations_but_sees_no_data(self, stack: Up) -> None:
        with stack.admin() as admin:
            assert list(admin.populations.list()) == []
            assert [key.scopes for key in admin.keys.list()] == [["admin"]]

    def test_the_service_runs_as_the_application_role(self, stack: Up) -> None:
        settings = stack.child("service", "serve").environ()
        assert make_url(settings["SCRIM_DATABASE_URL"]).username == APP_ROLE
        assert "SCRIM_MIGRATION_URL" not in settings

    def test_no_secret_is_among_the_arguments(self, stack: Up) -> None:
        secrets = [(stack.data_dir / name).read_text().strip() for name in SECRETS]
        for process in stack.processes():
            arguments = " ".join(process.cmdline())
            assert not any(secret in arguments for secret in secrets)

    @pytest.mark.parametrize("words", [("service", "serve"), ("worker", "jobs")])
    def test_a_child_that_dies_comes_back(self, stack: Up, words: tuple[str, str]) -> None:
        killed = stack.child(*words)
        killed.kill()
        wait_until(lambda: not is_alive(killed), seconds=PATIENCE)

        def is_back() -> bool:
            try:
                return stack.child(*words).pid != killed.pid and stack.is_ready()
            except LookupError:
                return False

        wait_until(is_back, seconds=PATIENCE)

    def test_a_second_stack_in_the_same_folder_is_refused(self, stack: Up) -> None:
        refused = start(stack.data_dir, stack.port)
        assert refused.returncode == 1
        assert "is in use by another process" in refused.stderr

    def test_a_port_that_is_taken_is_refused(self, stack: Up, folder: Path) -> None:
        refused = start(folder / "data", stack.port)
        assert refused.returncode == 1
        assert f"Port {stack.port} cannot be used" in refused.stderr


def test_a_killed_stack_leaves_nothing_and_starts_again(folder: Path) -> None:
    with running(folder) as up:
        with up.admin() as admin:
            admin.populations.create("people", cap={"rho": 1.0}, delta=1e-9)
        everything = up.processes()
        up.process.send_signal(signal.SIGKILL)
        wait_until(lambda: not any(map(is_alive, everything)), seconds=PATIENCE)
    with running(folder) as up, up.admin() as admin:
        assert [population.name for population in admin.populations.list()] == ["people"]
        assert "in use by another process" in run_beside(folder, "true").stderr
    run_commands_beside_the_servers_alone(folder)
    refuse_to_invent_a_master_key(folder)


def run_commands_beside_the_servers_alone(data_dir: Path) -> None:
    anchored = run_beside(data_dir, sys.executable, "-m", "service", "reanchor")
    assert (anchored.returncode, anchored.stderr) == (0, "")
    assert "nothing to do" in anchored.stdout
    assert run_beside(data_dir, "sh", "-c", "exit 7").returncode == 7


def run_beside(data_dir: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command beside the servers of a folder, without the rest of the stack."""
    beside = (sys.executable, "-m", "service.embedded", "run", "--data-dir", str(data_dir), "--")
    return subprocess.run(
        [*beside, *command], env=environment(), capture_output=True, text=True, timeout=PATIENCE
    )


def refuse_to_invent_a_master_key(data_dir: Path) -> None:
    (data_dir / "master.key").rename(data_dir / "elsewhere")
    refused = start(data_dir, find_free_port())
    assert refused.returncode == 1
    assert "restore it from a backup" in refused.stderr
    assert not (data_dir / "master.key").exists()


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """A database server of somebody else's."""
    with scratch() as path, PostgresServer(path, durable=False) as server:
        yield server


@pytest.fixture(scope="module")
def valkey() -> Iterator[ValkeyServer]:
    """A broker of somebody else's."""
    with scratch() as path, ValkeyServer(path, durable=False) as server:
        yield server


class TestServersOfOthers:
    def test_they_are_used_instead(
        self, postgres: PostgresServer, valkey: ValkeyServer, folder: Path
    ) -> None:
        objects = folder / "my objects"
        app_url = make_url(postgres.url).set(username=APP_ROLE, password="correct horse")
        settings = {
            "SCRIM_DATABASE_URL": app_url.render_as_string(hide_password=False),
            "SCRIM_MIGRATION_URL": postgres.url,
            "SCRIM_BROKER_URL": valkey.url,
            "SCRIM_STORAGE_URL": objects.as_uri(),
        }
        with running(folder / "data", **settings) as up, up.admin() as admin:
            admin.populations.create("people", cap={"rho": 1.0}, delta=1e-9)
            names = {path.name for path in up.data_dir.iterdir()}
            assert names.isdisjoint({"postgres", "valkey", "objects", "database.password"})
            assert objects.is_dir()
        del settings["SCRIM_MIGRATION_URL"]
        self.use_as_the_owner(folder / "data", settings | {"SCRIM_DATABASE_URL": postgres.url})

    def use_as_the_owner(self, data_dir: Path, settings: dict[str, str]) -> None:
        """Given the owner's address, the service still runs as the application's role."""
        with running(data_dir, **settings) as up, up.admin() as admin:
            assert [population.name for population in admin.populations.list()] == ["people"]
            address = up.child("service", "serve").environ()["SCRIM_DATABASE_URL"]
            assert make_url(address).username == APP_ROLE
        self.refuse_another_folder(data_dir.with_name("other"), settings)

    def refuse_another_folder(self, data_dir: Path, settings: dict[str, str]) -> None:
        """Without the anchor, nobody can tell whether the accounts are the newest."""
        refused = start(data_dir, find_free_port(), **settings)
        assert refused.returncode == 1
        assert "there is no anchor" in refused.stderr
