"""Copy the code, plant one bug, and run the tests that should detect it."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("scrim", "service", "synth", "worker")
COPIED = (*PACKAGES, "migrations", "tests", "pyproject.toml")
SECONDS = 900
"""Time limit of a set of tests; only a bug that makes a test hang exceeds it."""


@dataclass(frozen=True)
class Mutant:
    """One bug: what it breaks, the text it replaces, and the smallest tests that detect it."""

    bug: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """How the tests of one mutant ended."""

    bug: str
    failed: str | None
    """The first test that failed; None if all passed."""
    seconds: float


class Unusable(Exception):
    """A mutant that cannot be planted, or whose tests cannot run."""


def try_mutant(mutant: Mutant) -> Verdict:
    """Plant the bug in a copy and run its tests there."""
    started = time.monotonic()
    with copied() as copy:
        source = copy / mutant.file
        text = source.read_text()
        if text.count(mutant.old) != 1:
            raise Unusable(f"{mutant.bug}: the text to replace is not there exactly once")
        source.write_text(text.replace(mutant.old, mutant.new))
        failed = first_failure(copy, mutant.tests, mutant.bug)
    return Verdict(mutant.bug, failed, time.monotonic() - started)


def try_unchanged(mutants: Sequence[Mutant]) -> Verdict:
    """Run the tests of all mutants without a bug: they must pass, or catching a bug means nothing."""
    started = time.monotonic()
    bug = "no bug"
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    # A test that is named by itself and as part of a file runs once.
    tests = [test for test in tests if not any(test.startswith(f"{t}::") for t in tests)]
    with copied() as copy:
        check_imports(copy)
        failed = first_failure(copy, tests, bug)
    return Verdict(bug, failed, time.monotonic() - started)


@contextmanager
def copied() -> Iterator[Path]:
    """A copy of the code and its tests, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="scrim-mutant-") as folder:
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(
                    source, Path(folder, name), ignore=shutil.ignore_patterns("__pycache__")
                )
            else:
                shutil.copy(source, folder)
        yield Path(folder).resolve()


def environment_of(copy: Path) -> dict[str, str]:
    """The environment in which Python imports the copy, not what is installed."""
    return {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}


def check_imports(copy: Path) -> None:
    """Refuse to go on if a test in the copy would import code from anywhere else."""
    program = f"import {', '.join(PACKAGES)}; print({', '.join(f'{p}.__file__' for p in PACKAGES)})"
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, cwd=copy, env=environment_of(copy), capture_output=True, text=True, check=True
    )
    wanted = [str(copy / package / "__init__.py") for package in PACKAGES]
    if done.stdout.split() != wanted:
        raise Unusable(f"the copy is not what is imported: {done.stdout}")


def first_failure(copy: Path, tests: Sequence[str], bug: str) -> str | None:
    """The first of the tests that fails in the copy, if one does."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env=environment_of(copy),
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise Unusable(f"{bug}: the tests did not end within {SECONDS} seconds") from None
    if done.returncode == 0:
        return None
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    # A fixture error does not mean that a test detected the bug.
    if done.returncode != 1 or not failed:
        raise Unusable(f"{bug}: the tests did not run\n{done.stdout[-3000:]}{done.stderr}")
    return failed[0].removeprefix("FAILED ").partition(" - ")[0]
