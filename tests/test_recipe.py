"""The steps of CONTRIBUTING.md add a mechanism that plans, runs and keeps the promises of all others."""

import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.documents import ROOT, blocks
from tests.fresh_noise import announce_noise

pytestmark = pytest.mark.random

COPIED = ("scrim", "synth", "tests", "pyproject.toml")
NAME, CLASS = "asked_once", "AskedOnce"
PROMISES = (
    f"tests/scrim/spec/test_mechanism.py::test_a_name_alone_is_enough[{CLASS}]",
    f"tests/synth/planning/test_planners.py::test_the_file_with_a_mechanisms_name_has_every_function[{CLASS}]",
    f"tests/synth/test_mechanism_contract.py::test_spends_at_most_its_budget_and_nearly_all_of_it[{NAME}-row-add_remove]",
    f"tests/synth/test_mechanism_contract.py::test_never_touches_rows_outside_the_door[{NAME}]",
    f"tests/synth/test_mechanism_contract.py::test_huge_budget_approaches_the_truth[{NAME}]",
)


def follow(copy: Path) -> None:
    """Write the files that the steps show, and enter the mechanism in the register."""
    for block in blocks(ROOT / "CONTRIBUTING.md"):
        if block.language == "py":
            text = textwrap.dedent(block.text)
            path = re.match(r"# (\S+)\n", text)
            assert path is not None
            (copy / path[1]).write_text(text[path.end() :])
    register = copy / "scrim/spec/mechanism/__init__.py"
    text = register.read_text()
    text = text.replace(
        "from scrim.spec.mechanism.auto import Auto\n",
        "from scrim.spec.mechanism.auto import Auto\n"
        f"from scrim.spec.mechanism.{NAME} import {CLASS}\n",
    )
    text = text.replace(
        "Mechanism = Annotated[\n    Gaussian\n",
        f"Mechanism = Annotated[\n    Gaussian\n    | {CLASS}\n",
    )
    register.write_text(text)


def test_following_the_steps_adds_a_mechanism(tmp_path: Path) -> None:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tmp_path / name)
    follow(tmp_path)
    announce_noise()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *PROMISES],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(PROMISES)} passed" in done.stdout
