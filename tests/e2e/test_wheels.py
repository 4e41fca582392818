"""Both packages in empty environments: the client alone, and the whole product with its demo."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from scrim import __version__
from scrim.demo import FILES
from scrim.verify import verify
from tests.e2e.support import environment, running, scratch
from tests.fresh_noise import announce_noise
from tests.packages import ROOT, build_wheels
from tests.patience import PATIENCE
from tests.test_packages import HEAVY

pytestmark = [pytest.mark.wheels, pytest.mark.random]

INSTALL_SECONDS = 1800
"""Torch is a large download."""
SCHEMA = {"columns": [{"name": "ward", "type": "categorical", "values": ["A", "B"]}]}


@dataclass(frozen=True)
class Environment:
    """An environment with only the installed wheels, and an empty folder."""

    binaries: Path
    folder: Path

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment in the empty folder."""
        return subprocess.run(
            [self.binaries / program, *arguments],
            cwd=self.folder,
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def prints(self, program: str, *arguments: str) -> str:
        """Return what a program prints that must succeed."""
        done = self.run(program, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def clean_environment() -> dict[str, str]:
    """Our environment variables, without paths to the code of the repository and settings for tests."""
    kept = environment()
    for name in ("PYTHONPATH", "SCRIM_PROCESSES"):
        kept.pop(name, None)
    return kept


def install(folder: Path, wheels: list[Path]) -> Environment:
    """Install wheels into an environment of their own, with the versions of constraints.txt."""
    subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
    made = Environment(folder / "env" / "bin", folder / "empty")
    made.folder.mkdir()
    done = subprocess.run(
        [made.binaries / "pip", "install", "--constraint", ROOT / "constraints.txt", *wheels],
        cwd=made.folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return made


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The client's, then the server's."""
    return build_wheels(tmp_path_factory.mktemp("wheels"))


@pytest.fixture(scope="module")
def client(wheels: list[Path]) -> Iterator[Environment]:
    """An environment with `scrim` alone."""
    with scratch() as folder:
        yield install(folder, wheels[:1])


@pytest.fixture(scope="module")
def server(wheels: list[Path]) -> Iterator[Environment]:
    """An environment with both packages, in which the demo has run."""
    announce_noise()
    with scratch() as folder:
        made = install(folder, wheels)
        made.prints("scrim", "demo", "--data-dir", "data")
        yield made


class TestClient:
    def test_nothing_heavy_is_installed(self, client: Environment) -> None:
        listed = json.loads(client.prints("pip", "list", "--format", "json"))
        names = {each["name"].lower() for each in listed}
        assert "scrim" in names
        assert not names & (HEAVY | {"scrim-server"})

    def test_client_and_contract_can_be_imported(self, client: Environment) -> None:
        program = "import scrim, scrim.spec.release; print(scrim.Client.__module__, scrim.__file__)"
        module, file = client.prints("python", "-c", program).split()
        assert module == "scrim.client"
        assert Path(file).is_relative_to(client.binaries.parent)

    def test_the_command_works(self, client: Environment) -> None:
        assert client.prints("scrim", "--version") == f"scrim {__version__}\n"
        assert "Usage: scrim" in client.prints("scrim", "--help")
        (client.folder / "schema.json").write_text(json.dumps(SCHEMA))
        checked = json.loads(client.prints("scrim", "schema", "check", "schema.json", "--json"))
        assert checked["ok"]

    @pytest.mark.parametrize("command", ["up", "demo"])
    def test_it_says_how_to_get_the_server(self, client: Environment, command: str) -> None:
        done = client.run("scrim", command)
        assert done.returncode != 0
        said = " ".join((done.stdout + done.stderr).split())
        assert "scrim-server is not installed" in said
        assert "pip install scrim-server" in said
        assert "Traceback" not in said


class TestServer:
    def test_the_demo_releases_and_verifies(self, server: Environment) -> None:
        output = server.folder / "demo-output"
        assert {path.name for path in output.iterdir()} == set(FILES)
        assert "<style>" in (output / "report.html").read_text()
        report = verify(output / "certificate.json", [output / name for name in FILES])
        assert report.ok and report.certificate is not None
        assert report.certificate["software"] == f"scrim {__version__}"

    def test_the_service_runs_with_console_and_migrations(
        self, server: Environment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(server.folder)
        with running(server.folder / "data", [str(server.binaries / "scrim")]) as up:
            with httpx.Client(base_url=up.url, trust_env=False, follow_redirects=True) as browser:
                assert "migrations" in browser.get("/readyz").json()["checks"]
                page = browser.get("/console")
                assert page.is_success
                assert "console.css" in page.text
                assert browser.get("/console/static/console.css").is_success
                assert browser.get("/openapi.json").json()["info"]["version"] == __version__
            code, printed = up.interrupt()
            assert code == 0, printed
