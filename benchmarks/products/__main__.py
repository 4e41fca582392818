"""`python -m benchmarks.products run` measures; `python -m benchmarks.products report` shows.

Measuring goes on where it was broken off: what the results file already has is not run again.
"""

import argparse
from pathlib import Path

from benchmarks.products.grid import EPSILONS, RUNS, Grid, run_grid
from benchmarks.products.outcomes import read
from benchmarks.products.report import write_report
from benchmarks.products.sets import COMPARISONS

RESULTS = Path("docs/results/products.jsonl")


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.products",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--results", type=Path, default=RESULTS, help="file of JSON lines")

    run = commands.add_parser("run", parents=[shared], help="run a grid of releases")
    names = [comparison.name for comparison in COMPARISONS]
    run.add_argument("--set", nargs="+", choices=names, default=names, metavar="SET", dest="sets")
    run.add_argument("--epsilon", nargs="+", type=float, default=EPSILONS, dest="epsilons")
    run.add_argument("--mechanism", nargs="+", default=None, dest="mechanisms")
    run.add_argument("--runs", type=int, default=RUNS)
    run.add_argument("--again", action="store_true", help="also run what the file already has")

    report = commands.add_parser("report", parents=[shared], help="write tables and plots")
    report.add_argument("--output", type=Path, default=RESULTS.parent, help="folder")
    return parser.parse_args()


def main() -> None:
    """Measure or show."""
    given = parse()
    if given.command == "run":
        chosen = [comparison for comparison in COMPARISONS if comparison.name in given.sets]
        grid = Grid(given.epsilons, given.runs, given.mechanisms)
        run_grid(chosen, grid, results=given.results, again=given.again)
    else:
        write_report(COMPARISONS, read(given.results), given.output)


if __name__ == "__main__":
    main()
