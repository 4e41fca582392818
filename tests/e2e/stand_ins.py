"""Stand-ins for the few programs of the pages that cannot run inside a test.

A stand-in records how it was called and does nothing. Afterwards every call is checked.
"""

import re
import runpy
import shlex
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

import yaml

from tests.documents import ROOT
from tests.e2e.support import scratch

SEPARATOR = "\x1f"
ASSIGNMENT = re.compile(r"\w+=")
COMPOSE_OPTIONS = {"--build", "--detach", "--rm"}


@dataclass(frozen=True)
class Call:
    """A call of a stand-in."""

    program: str
    arguments: tuple[str, ...]
    folder: Path

    def __str__(self) -> str:
        return shlex.join([self.program, *self.arguments])


def install_stand_ins(folder: Path) -> Path:
    """Install all stand-ins on the path of a page; returns the file that records calls."""
    log = folder.with_name(f"{folder.name}.calls")
    log.touch()
    for name, script in programs().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        note = f'note() {{ printf \'%s\\037\' {name} "$PWD" "$@" >>{log}; echo >>{log}; }}'
        path.write_text(f"#!/bin/sh\n{note}\n{script}\n")
        path.chmod(0o755)
    return log


def programs() -> dict[str, str]:
    """The script of each stand-in; calls that are not recorded run the real program."""
    python, tools = shlex.quote(sys.executable), shlex.quote(str(ROOT))
    scrim = f'exec {python} -m scrim.cli "$@"'
    return {
        # A stack runs already; `scrim demo` has a test of its own (tests/e2e/test_demo.py).
        ".venv/bin/scrim": f'case "$1" in up|demo) note "$@";; *) {scrim};; esac',
        # Minutes of tests, which are part of the same run.
        ".venv/bin/pytest": 'note "$@"',
        # `make` calls everything through these two folders.
        ".venv/bin/python": 'note "$@"',
        # Long-running parts, which the stack runs; other commands of the modules are real.
        "stand-ins/python": (
            f'case "$2 ${{3:-}}" in "service serve"|"worker "*|"worker.reaper "*) note "$@";; '
            f'*) exec {python} "$@";; esac'
        ),
        # Long benchmarks, environments, tests: only `make help` is short.
        "stand-ins/make": f'if [ "$*" = help ]; then exec {real("make")} -C {tools} help; fi; note "$@"',
        # The machine may have no container engine.
        "stand-ins/docker": 'note "$@"',
    }


def real(program: str) -> str:
    """The path of the real program behind a stand-in."""
    found = shutil.which(program)
    assert found is not None, f"{program} is not installed"
    return shlex.quote(found)


def read_calls(log: Path) -> tuple[Call, ...]:
    """The calls that were noted."""
    lines = (line.split(SEPARATOR)[:-1] for line in log.read_text().splitlines())
    return tuple(Call(name, tuple(words), Path(folder)) for name, folder, *words in lines)


def check(call: Call) -> None:
    """Whether the real program would understand this call."""
    CHECKS[call.program](call)


def check_scrim(call: Call) -> None:
    understands_help("scrim.cli", *call.arguments)


def check_pytest(call: Call) -> None:
    assert call.arguments
    for path in call.arguments:
        assert (ROOT / path).exists(), call


def check_python(call: Call) -> None:
    option, module, *arguments = call.arguments
    assert option == "-m", call
    if arguments:
        understands_help(module, *arguments)
    else:
        assert find_spec(module) is not None, call


def check_make(call: Call) -> None:
    """Check that the targets exist, and the arguments of benchmarks."""
    done = subprocess.run(
        ["make", "--dry-run", *call.arguments], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{call}: {done.stderr}"
    commands = [line for line in done.stdout.splitlines() if " benchmarks." in line]
    if commands:
        given = {variable.partition("=")[0] for variable in call.arguments if "=" in variable}
        assert given <= set(re.findall(r"^(\w+) \?=", (ROOT / "Makefile").read_text(), re.M)), call
        check_benchmarks(commands)


def check_benchmarks(commands: list[str]) -> None:
    """Run what `make` printed, with a stand-in for Python."""
    with scratch() as folder:
        log = install_stand_ins(folder / "page")
        subprocess.run(["sh", "-euc", "\n".join(commands)], cwd=folder / "page", check=True)
        for noted in read_calls(log):
            check(noted)


def check_docker(call: Call) -> None:
    """A command of Compose about parts that the compose file has."""
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    profiles = {name for part in compose.values() for name in part.get("profiles", [])}
    first, *words = call.arguments
    assert first == "compose", call
    while words:
        match words:
            case ["--profile", name, *words]:
                assert name in profiles, call
            case ["--scale", scaled, *words]:
                assert scaled.partition("=")[0] in compose, call
            case ["up" | "build", *words]:
                pass
            case ["run", "--rm", part, "python", *command]:
                assert part in compose, call
                check_python(Call("python", tuple(command), call.folder))
                break
            case [option, *words]:
                assert option in COMPOSE_OPTIONS, call
    if has_compose():
        settings = ["--project-directory", str(ROOT), "--env-file", str(call.folder / ".env")]
        subprocess.run(["docker", "compose", *settings, "config", "--quiet"], check=True)


def has_compose() -> bool:
    """Whether Compose is installed; reading a file needs no engine."""
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "compose", "version"], capture_output=True).returncode == 0


def understands_help(module: str, *arguments: str) -> None:
    """Arguments are read one after the other, so what comes before --help must be known."""
    with patch.object(sys, "argv", [module, *arguments, "--help"]), warnings.catch_warnings():
        # It may have been imported before, which does no harm.
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            runpy.run_module(module, run_name="__main__")
        except SystemExit as end:
            assert end.code in (0, None), f"{module} {shlex.join(arguments)}"
        else:
            raise AssertionError(f"{module} does not read its arguments")


CHECKS: dict[str, Callable[[Call], None]] = {
    ".venv/bin/scrim": check_scrim,
    ".venv/bin/pytest": check_pytest,
    ".venv/bin/python": check_python,
    "stand-ins/python": check_python,
    "stand-ins/make": check_make,
    "stand-ins/docker": check_docker,
}
