"""The client imports nothing of the service or the algorithms."""

import subprocess
import sys

import pytest

import scrim

MODULES = "scrim, scrim.cli, scrim.demo, scrim.schema, scrim.verify"
OURS = ("service", "worker", "synth.run", "synth.table")
OPTIONAL = ("pandas", "polars", "pyarrow", "numpy", "torch", "sqlalchemy", "yaml")
FORBIDDEN = OURS + OPTIONAL

PRINT_IMPORTED = f"""
import sys
import {MODULES}
print(*(name for name in {FORBIDDEN!r} if name in sys.modules))
"""


def test_importing_it_imports_nothing_else_of_ours() -> None:
    found = subprocess.run(
        [sys.executable, "-c", PRINT_IMPORTED], capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == []


def test_the_public_names_load_on_first_use() -> None:
    assert set(scrim.__all__) <= set(dir(scrim))
    assert all(getattr(scrim, name).__name__ == name for name in scrim.__all__)
    with pytest.raises(AttributeError, match="'scrim' has no attribute 'Klient'"):
        getattr(scrim, "Klient")  # noqa: B009


def test_nothing_else_is_public() -> None:
    public = {name for name in vars(scrim) if not name.startswith("_")}
    submodules = {name for name in public if f"scrim.{name}" in sys.modules}
    assert public - submodules - {"TYPE_CHECKING"} <= set(scrim.__all__)
