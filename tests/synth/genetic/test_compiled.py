"""What is kept of compiled code on disk."""

from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from synth.compiled import kept_on_disk
from synth.genetic import compiled, evolution
from synth.genetic.compiled import fingerprint


def test_it_is_found_again_only_with_the_same_sources() -> None:
    kept: Any = evolution._entry()
    enclosed = [cell.cell_contents for cell in kept.py_func.__closure__]
    assert fingerprint() in enclosed


def test_any_change_of_a_source_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copytree(Path(compiled.__file__).parent, tmp_path / "genetic")
    before = fingerprint()
    monkeypatch.setattr(compiled, "__file__", str(folder / "compiled.py"))
    assert fingerprint() == before
    with (folder / "tables.py").open("a") as file:
        file.write("# another state\n")
    assert fingerprint() != before


def test_without_a_place_to_keep_it_a_function_is_compiled_anyway() -> None:
    names: dict[str, Any] = {}
    exec("def add_one(number):\n    return number + 1\n", names)  # has no file
    assert kept_on_disk(names["add_one"])(1) == 2
