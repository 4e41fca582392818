"""The import rules in pyproject.toml list every module that they apply to."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
CONTRACTS: list[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"][
    "importlinter"
]["contracts"]


def modules_of(package: str) -> set[str]:
    """The modules and packages directly inside one."""
    found = (ROOT / package).iterdir()
    return {
        f"{package}.{path.stem}"
        for path in found
        if (path.suffix == ".py" and path.stem != "__init__") or (path / "__init__.py").exists()
    }


@pytest.mark.parametrize(
    ("words", "package", "allowed"),
    [
        (
            "the server imports nothing else of scrim",
            "scrim",
            {"scrim.spec", "scrim.importers"},
        ),
        ("The service imports nothing of synth but planning", "synth", {"synth.planning"}),
        ("nothing of the service but the data layer", "service", {"service.data"}),
    ],
)
def test_everything_but_what_is_allowed_is_forbidden(
    words: str, package: str, allowed: set[str]
) -> None:
    (contract,) = (each for each in CONTRACTS if words in each["name"])
    assert modules_of(package) - allowed <= set(contract["forbidden_modules"])


def test_no_rule_has_an_exception() -> None:
    assert not any("ignore_imports" in contract for contract in CONTRACTS)


def test_whether_a_table_has_groups_is_asked_of_its_schema() -> None:
    """Code that needs a type test because the algorithms differ is listed here; the rest uses properties."""
    tested = re.compile(r"isinstance\([^()]*, (Schema|LinkedSchema|TwoLevelSchema)\)")
    packages = ("scrim", "synth", "service", "worker")
    paths = [path for package in packages for path in (ROOT / package).rglob("*.py")]
    found = [
        path.relative_to(ROOT).as_posix()
        for path in paths
        for _ in tested.findall(path.read_text())
    ]
    assert sorted(found) == [
        "scrim/form/rows.py",
        "scrim/spec/two_level.py",
        "scrim/spec/workload/hierarchical.py",
        "synth/planning/subject.py",
        "synth/table/drawing.py",
        "worker/artifacts.py",
        "worker/ingest.py",
    ]
