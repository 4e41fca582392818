"""The rules about imports in pyproject.toml name every module that they are about."""

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
        ("the server nothing but the contract", "scrim", {"scrim.spec"}),
        ("Of synth, the service sees planning alone", "synth", {"synth.planning"}),
        ("see the data layer alone", "service", {"service.data"}),
    ],
)
def test_everything_but_what_is_allowed_is_forbidden(
    words: str, package: str, allowed: set[str]
) -> None:
    (contract,) = (each for each in CONTRACTS if words in each["name"])
    assert modules_of(package) - allowed <= set(contract["forbidden_modules"])


def test_no_rule_has_an_exception() -> None:
    assert not any("ignore_imports" in contract for contract in CONTRACTS)
