"""`python -m benchmarks.judge run` measures; `report` shows; `times` measures a small job.

Measuring goes on where it was broken off: what the results file already has of this state of the code
is not run again.
"""

import argparse
from pathlib import Path

from benchmarks.comparison.grid import run_grid
from benchmarks.comparison.options import add_grid_options, add_names, grid_of
from benchmarks.judge.job import judge_table
from benchmarks.judge.sets import SETS

RESULTS = Path("docs/results/judge.jsonl")
EPSILONS = (0.1, 1.0, 10.0)
RUNS = 3


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.judge",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--results", type=Path, default=RESULTS, help="file of JSON lines")

    run = commands.add_parser("run", parents=[shared], help="run a grid of releases")
    add_names(run, "set", [each.name for each in SETS])
    add_grid_options(run, epsilons=EPSILONS, runs=RUNS)
    return parser.parse_args()


def main() -> None:
    """Measure or show."""
    given = parse()
    run_grid(
        [each.comparison for each in SETS if each.name in given.sets],
        grid_of(given),
        results=given.results,
        again=given.again,
        same_code=True,
        judge=judge_table,
    )


if __name__ == "__main__":
    main()
