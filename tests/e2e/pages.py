"""Run the code of pages: one shell and one Python namespace per page, block after block."""

import ast
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.documents import Block, blocks, name_of
from tests.e2e.stand_ins import Call, install_stand_ins, read_calls
from tests.e2e.support import environment, wait_until
from tests.fresh_noise import announce_noise
from tests.patience import PATIENCE

ADDRESS = "http://127.0.0.1:8000"
"""The default address of the pages' service."""
EXECUTED = ("sh", "python")
FAILS = "  # fails"
"""Comment at the end of a command that must fail."""


@dataclass(frozen=True)
class Surroundings:
    """The environment in which a page runs, and how it differs from the page's text."""

    environment: Mapping[str, str] = field(default_factory=dict)
    replacements: Mapping[str, str] = field(default_factory=dict)
    """Replacements in the page's text, such as addresses of the reader's machines."""
    interludes: Mapping[str, Callable[[], None]] = field(default_factory=dict)
    """Functions to call before the block that contains these words, in the page's environment."""

    def adapted(self, text: str) -> str:
        """The text with replacements."""
        for words, others in self.replacements.items():
            text = text.replace(words, others)
        return text

    def prepare(self, block: Block) -> None:
        """Call the interludes before a block."""
        for words, act in self.interludes.items():
            if words in block.text:
                act()


@dataclass(frozen=True)
class Ran:
    """The result of a page: its folder, its output, and the calls of stand-ins."""

    folder: Path
    printed: str
    calls: tuple[Call, ...]


def run_page(document: Path, folder: Path, surroundings: Surroundings) -> Ran:
    """Run every executable block of a page, in order, in an empty folder."""
    announce_noise()
    folder.mkdir()
    log = install_stand_ins(folder)
    namespace: dict[str, object] = {"__name__": "page"}
    with Shell(folder, environment(**surroundings.environment)) as shell:
        for block in blocks(document):
            with inside(shell.environment):
                surroundings.prepare(block)
            text = surroundings.adapted(block.text)
            where = f"{name_of(document)}, line {block.line}"
            if block.language == "sh":
                shell.run(text, where)
            elif block.language == "python":
                with inside(shell.environment):
                    run_python(text, namespace, document, line=block.line)
    return Ran(folder, shell.printed(), read_calls(log))


class Shell:
    """One `sh` for a whole page; the first command that fails ends it."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self._own = folder.with_name(f"{folder.name}.shell")
        self._own.mkdir()
        self.environment = {
            **variables,
            "PWD": str(folder),
            "PATH": f"{folder / 'stand-ins'}:{variables['PATH']}",
        }
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                ["sh", "-eu"],
                cwd=folder,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self) -> "Shell":
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def _output(self) -> Path:
        return self._own / "output"

    def _has_ended(self) -> bool:
        return self._process.poll() is not None

    def printed(self) -> str:
        """Everything that the commands printed."""
        return self._output.read_text()

    def run(self, text: str, where: str) -> None:
        """Run one block; afterwards `environment` is what the next program would see."""
        program, state = self._own / "block.sh", self._own / "environment"
        program.write_text("\n".join(map(expect_failure, text.splitlines())) + "\n")
        before = len(self.printed())
        state.unlink(missing_ok=True)
        # The block has no input. When it is done, its variables are written atomically.
        ask = f". {program} </dev/null\nenv -0 >{state}.new\nmv {state}.new {state}\n"
        assert self._process.stdin is not None
        self._process.stdin.write(ask.encode())
        self._process.stdin.flush()
        wait_until(lambda: state.exists() or self._has_ended(), seconds=PATIENCE)
        assert state.exists(), f"{where}: failed\n{text}\n{self.printed()[before:]}"
        pairs = state.read_text().rstrip("\0").split("\0")
        self.environment = dict(pair.split("=", 1) for pair in pairs)


def expect_failure(line: str) -> str:
    """Require that a command marked as failing fails."""
    if not line.endswith(FAILS):
        return line
    command = line.removesuffix(FAILS)
    return f"if {command}; then echo 'this did not fail'; exit 1; fi"


@contextmanager
def inside(variables: Mapping[str, str]) -> Iterator[None]:
    """Use the environment and the folder of the page's shell."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(variables)
    try:
        with chdir(variables["PWD"]):
            yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def run_python(text: str, namespace: dict[str, object], document: Path, *, line: int) -> None:
    """Run one block, and show its last expression as a notebook would."""
    # Empty lines in front, so that a traceback names the line of the document.
    tree = ast.parse("\n" * (line - 1) + text, str(document))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(document), "exec"), namespace)
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), str(document), "eval"), namespace)
        show(value)


def show(value: object) -> None:
    """Show a value as a notebook does: charts are rendered only now."""
    if hasattr(value, "_repr_mimebundle_"):
        assert value._repr_mimebundle_()
    elif value is not None:
        sys.stdout.write(f"{value}\n")
