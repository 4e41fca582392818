"""Options that the commands of all comparisons share."""

import argparse
from collections.abc import Sequence

from benchmarks.comparison.grid import Grid


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
