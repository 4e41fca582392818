"""`python -m benchmarks.judge run` measures; `report` shows; `times` measures a small job.

An interrupted measurement continues: results of this state of the code that the file already has are not
run again.
"""

import argparse
from pathlib import Path

from benchmarks.comparison.grid import run_grid
from benchmarks.comparison.options import grid_commands, grid_of
from benchmarks.comparison.outcomes import read_lines
from benchmarks.judge.outcomes import newest_code, read_judgements
from benchmarks.judge.report import write_report
from benchmarks.judge.sets import SETS
from benchmarks.judge.times import measure_times, run_small_jobs, times_of

RESULTS = Path("docs/results/judge.jsonl")
TIMES = "judge-times.jsonl"
"""Beside the results."""
EPSILONS = (0.1, 1.0, 10.0)
RUNS = 3


def parse() -> argparse.Namespace:
    """The command line."""
    found = grid_commands(
        "benchmarks.judge",
        __doc__,
        results=RESULTS,
        sets=[each.name for each in SETS],
        epsilons=EPSILONS,
        runs=RUNS,
    )
    found.report.add_argument(
        "--code", help="fingerprint of the code to show; that of the last line by default"
    )

    found.commands.add_parser(
        "times", parents=[found.shared], help="time a small job alone and beside another"
    )
    found.commands.add_parser("small-jobs", help="run the jobs of one process of `times`")
    return found.parser.parse_args()


def run(given: argparse.Namespace) -> None:
    """Run the grid that the options describe."""
    # The classifier needs scikit-learn; a report does not.
    from benchmarks.judge.job import judge_table

    run_grid(
        [each.comparison for each in SETS if each.name in given.sets],
        grid_of(given),
        results=given.results,
        again=given.again,
        same_code=True,
        judge=judge_table,
    )


def report(given: argparse.Namespace) -> None:
    """Show the lines of one state of the code."""
    code = given.code or newest_code(given.results)
    others = sum(fields["code"] != code for _, fields in read_lines(given.results))
    times = times_of(given.results.with_name(TIMES), code=code)
    judgements = read_judgements(given.results, code=code)
    write_report(judgements, given.output, code=code, others=others, times=times)


def time_jobs(given: argparse.Namespace) -> None:
    """Time small jobs, and show what was measured."""
    path = given.results.with_name(TIMES)
    code = measure_times(path)
    figures = times_of(path, code=code)
    assert figures is not None
    figures.show("Small jobs")


def main() -> None:
    """Measure or show."""
    given = parse()
    if given.command == "run":
        run(given)
    elif given.command == "report":
        report(given)
    elif given.command == "times":
        time_jobs(given)
    else:
        run_small_jobs()


if __name__ == "__main__":
    main()
