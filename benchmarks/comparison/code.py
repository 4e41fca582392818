"""Which state of the code ran."""

import ast
import hashlib
import subprocess
from collections.abc import Iterable
from pathlib import Path

import scrim.spec
import synth

FOLDERS = (Path(synth.__path__[0]), Path(scrim.spec.__path__[0]))
"""The algorithms, and the contract with their defaults."""


def fingerprint(folders: Iterable[Path] = FOLDERS) -> str:
    """Tell apart states of the code whose figures should not be mixed.

    Comments, docstrings and the layout do not count: they change no figure.
    """
    digest = hashlib.sha256()
    for folder in folders:
        for file in sorted(folder.rglob("*.py")):
            digest.update(file.relative_to(folder).as_posix().encode())
            digest.update(_statements(file.read_text()).encode())
    return digest.hexdigest()[:12]


def _statements(source: str) -> str:
    """A program without its docstrings and comments."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [each for each in body if not _is_text(each)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def commit() -> str:
    """The commit that is checked out, marked where the fingerprinted folders differ from it."""
    try:
        checked_out = _git("rev-parse", "--short=12", "HEAD")
        changed = _git("status", "--porcelain", "--", *map(str, FOLDERS))
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{checked_out}, with changes" if changed else checked_out


def _git(*arguments: str) -> str:
    folder = Path(__file__).parent
    done = subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, check=True, text=True
    )
    return done.stdout.strip()
