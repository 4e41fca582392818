"""`python -m benchmarks.households run` measures; `python -m benchmarks.households report` shows.

An interrupted measurement continues: results that the file already has are not run again.
"""

import argparse
from pathlib import Path

from benchmarks.comparison.grid import run_grid
from benchmarks.comparison.options import grid_commands, grid_of
from benchmarks.households.job import COMPETITORS, judge_groups
from benchmarks.households.outcomes import read
from benchmarks.households.report import write_report
from benchmarks.households.sets import COMPARISONS

RESULTS = Path("docs/results/households.jsonl")
EPSILONS = (0.125, 0.25, 0.5, 1.0)
"""The epsilons of the paper."""
RUNS = 5


def parse() -> argparse.Namespace:
    """The command line."""
    found = grid_commands(
        "benchmarks.households",
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
        run_grid(
            chosen,
            grid_of(given),
            results=given.results,
            again=given.again,
            judge=judge_groups,
            competitors=COMPETITORS,
        )
    else:
        write_report(COMPARISONS, read(given.results), given.output)


if __name__ == "__main__":
    main()
