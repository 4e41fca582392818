"""`python -m benchmarks.quality.forecasts run` measures; `... report` compares with the forecasts."""

import argparse
from pathlib import Path

from benchmarks.comparison.grid import run_grid
from benchmarks.comparison.options import add_grid_options, add_names, grid_of
from benchmarks.quality.tables import SETS

RESULTS = Path("docs/results/forecasts.jsonl")
EPSILONS = (1.0, 0.1, 10.0)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality.forecasts")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run a grid of releases")
    add_names(run, "set", [each.name for each in SETS])
    add_grid_options(run, epsilons=EPSILONS, runs=1)
    return parser.parse_args()


def main() -> None:
    """Measure or show."""
    given = parse()
    chosen = [each.comparison for each in SETS if each.name in given.sets]
    run_grid(chosen, grid_of(given), results=RESULTS, again=given.again)


if __name__ == "__main__":
    main()
