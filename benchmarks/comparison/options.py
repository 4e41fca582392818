"""Options that the commands of all comparisons share."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.comparison.grid import Grid


@dataclass(frozen=True)
class GridCommands:
    """A command line with the commands `run` and `report`, to which others can be added."""

    parser: argparse.ArgumentParser
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]"
    shared: argparse.ArgumentParser
    """The option of all commands: the file of results."""
    report: argparse.ArgumentParser


def grid_commands(
    package: str,
    description: str | None,
    *,
    results: Path,
    sets: Sequence[str],
    epsilons: Sequence[float],
    runs: int,
) -> GridCommands:
    """The command line of a package that runs a grid and reports its results, with these defaults."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {package}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--results", type=Path, default=results, help="file of JSON lines")

    run = commands.add_parser("run", parents=[shared], help="run a grid of releases")
    add_names(run, "set", sets)
    add_grid_options(run, epsilons=epsilons, runs=runs)

    report = commands.add_parser("report", parents=[shared], help="write tables and plots")
    report.add_argument("--output", type=Path, default=results.parent, help="folder")
    return GridCommands(parser, commands, shared, report)


def add_grid_options(
    parser: argparse.ArgumentParser, *, epsilons: Sequence[float], runs: int
) -> None:
    """Add the options of a grid, with these defaults."""
    parser.add_argument("--epsilon", nargs="+", type=float, default=epsilons, dest="epsilons")
    parser.add_argument("--mechanism", nargs="+", default=None, dest="mechanisms")
    parser.add_argument("--runs", type=int, default=runs)
    parser.add_argument("--again", action="store_true", help="also run what the file already has")


def add_names(parser: argparse.ArgumentParser, option: str, names: Sequence[str]) -> None:
    """Add an option that chooses some of these names; by default all."""
    parser.add_argument(
        f"--{option}",
        nargs="+",
        choices=names,
        default=names,
        metavar=option.upper(),
        dest=f"{option}s",
    )


def grid_of(given: argparse.Namespace) -> Grid:
    """The grid that the options describe."""
    return Grid(given.epsilons, given.runs, given.mechanisms)
