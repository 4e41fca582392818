"""The page about the client and the command, run as it stands against a real stack."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.support import Up, environment, running, scratch

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "client.md"
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```\n", re.M | re.S)
PAGE_SECONDS = 300


@pytest.fixture(scope="module")
def up() -> Iterator[Up]:
    with scratch() as folder, running(folder / "data", OMP_NUM_THREADS="1") as stack:
        yield stack


def run_page(language: str, command: list[str], folder: Path, up: Up) -> str:
    """Everything that the blocks of one language print, one after the other."""
    text = "".join(text for found, text in BLOCK.findall(PAGE.read_text()) if found == language)
    done = subprocess.run(
        [*command, text],
        cwd=folder,
        env=environment(SCRIM_URL=up.url, SCRIM_DATA=str(up.data_dir), PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        timeout=PAGE_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_python_of_the_page_runs(up: Up, tmp_path: Path) -> None:
    printed = run_page("python", [sys.executable, "-W", "error", "-c"], tmp_path, up)
    assert "succeeded" in printed
    assert {path.name for path in (tmp_path / "released").iterdir()} == {
        "certificate.json",
        "synthetic.csv",
    }


def test_the_commands_of_the_page_run(up: Up, tmp_path: Path) -> None:
    command = tmp_path / ".venv" / "bin" / "scrim"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m client.cli "$@"\n')
    command.chmod(0o755)
    printed = run_page("sh", ["sh", "-euc"], tmp_path, up)
    assert re.search(r"^ok +synthetic\.csv", printed, re.M) and "BAD" not in printed
