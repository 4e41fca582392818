"""What the packages `scrim` and `scrim-server` hold and declare; tests/e2e/test_wheels.py installs them."""

import tarfile
from email.message import Message
from email.parser import Parser
from importlib.metadata import version
from pathlib import Path

import pytest

import scrim
from tests.packages import ROOT, SOURCES, build, build_wheels, files_in, metadata_of

SERVER_FOLDERS = {"migrations": "service/migrations"} | {
    name: name for name in ("service", "synth", "worker")
}
NOT_IN_THE_WHEEL = {"LICENSE", "README.md", "pyproject.toml"}
HEAVY = {"fastapi", "numpy", "opendp", "pyarrow", "sqlalchemy", "torch"}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The client's, then the server's."""
    return build_wheels(tmp_path_factory.mktemp("wheels"))


def files_below(folder: Path, installed_as: str) -> dict[str, bytes]:
    """What a folder of the repository holds, by the paths that it is installed as."""
    return {
        f"{installed_as}/{path.relative_to(folder).as_posix()}": path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def metadata(wheel: Path) -> Message:
    return Parser().parsestr(metadata_of(wheel, "METADATA"))


def required_by(wheel: Path) -> list[str]:
    """What it depends on, without extras."""
    return [each for each in metadata(wheel).get_all("Requires-Dist", []) if "extra ==" not in each]


def test_the_client_is_the_folder_scrim(wheels: list[Path]) -> None:
    expected = files_below(ROOT / "scrim", "scrim")
    for name in NOT_IN_THE_WHEEL:
        del expected[f"scrim/{name}"]
    assert files_in(wheels[0]) == expected


def test_the_server_is_everything_else_with_templates_and_migrations(wheels: list[Path]) -> None:
    expected = {
        path: content
        for folder, installed_as in SERVER_FOLDERS.items()
        for path, content in files_below(ROOT / folder, installed_as).items()
    }
    assert files_in(wheels[1]) == expected
    endings = {Path(path).suffix for path in expected}
    assert {".css", ".html", ".js", ".mako", ".sql"} <= endings


def test_every_package_is_typed(wheels: list[Path]) -> None:
    files = {path for wheel in wheels for path in files_in(wheel)}
    packages = {path.partition("/")[0] for path in files}
    assert packages == {"scrim", "service", "synth", "worker"}
    assert {f"{package}/py.typed" for package in packages} <= files


def test_the_client_is_light(wheels: list[Path]) -> None:
    assert not HEAVY & set(required_by(wheels[0]))


def test_the_server_needs_the_client_of_the_same_version(wheels: list[Path]) -> None:
    required = required_by(wheels[1])
    assert f"scrim=={scrim.__version__}" in required
    assert set(required) >= HEAVY


def test_one_version_for_both(wheels: list[Path]) -> None:
    assert {metadata(wheel)["Version"] for wheel in wheels} == {scrim.__version__}
    # If this fails alone, the environment is older than the version: run `make setup`.
    assert version("scrim") == version("scrim-server") == scrim.__version__


def test_both_carry_the_license(wheels: list[Path]) -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text and "END OF TERMS AND CONDITIONS" in text
    for wheel in wheels:
        assert metadata(wheel)["License-Expression"] == "Apache-2.0"
        assert metadata_of(wheel, "licenses/LICENSE") == text


@pytest.mark.parametrize("which", [0, 1], ids=["scrim", "scrim-server"])
def test_the_sdist_builds_the_same_wheel(which: int, wheels: list[Path], tmp_path: Path) -> None:
    sdist = build(SOURCES[which], tmp_path, target="sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    again = build(tmp_path / sdist.name.removesuffix(".tar.gz"), tmp_path)
    assert files_in(again) == files_in(wheels[which])
    assert metadata(again).items() == metadata(wheels[which]).items()
