"""`python -m benchmarks.products run` measures; `python -m benchmarks.products report` shows.

An interrupted measurement continues: results that the file already has are not run again.
"""

import argparse
from pathlib import Path

from benchmarks.comparison.grid import run_grid
from benchmarks.comparison.options import grid_commands, grid_of
from benchmarks.comparison.outcomes import read
from benchmarks.products.overview import write_overview
from benchmarks.products.report import write_report
from benchmarks.products.sets import COMPARISONS

RESULTS = Path("docs/results/products.jsonl")
EPSILONS = (0.1, 0.15, 0.2, 0.25, 0.5, 1.0)
"""The epsilons of the papers."""
RUNS = 5


def parse() -> argparse.Namespace:
    """The command line."""
    found = grid_commands(
        "benchmarks.products",
        __doc__,
        results=RESULTS,
        sets=[comparison.name for comparison in COMPARISONS],
        epsilons=EPSILONS,
        runs=RUNS,
    )
    return found.parser.parse_args()


def main() -> None:
    """Measure or show."""
    given = parse()
    if given.command == "run":
        chosen = [comparison for comparison in COMPARISONS if comparison.name in given.sets]
        run_grid(chosen, grid_of(given), results=given.results, again=given.again)
    else:
        outcomes = read(given.results)
        write_report(COMPARISONS, outcomes, given.output)
        write_overview(COMPARISONS, outcomes, given.output)


if __name__ == "__main__":
    main()
