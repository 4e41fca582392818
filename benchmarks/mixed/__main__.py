"""`python -m benchmarks.mixed run` compares errors; `report` shows all results; others are studies.

An interrupted measurement continues: results that the files already have are not measured again.
"""

import argparse
from pathlib import Path

from benchmarks.comparison.grid import Grid, run_grid
from benchmarks.comparison.options import add_grid_options, add_names, grid_of
from benchmarks.comparison.outcomes import read
from benchmarks.mixed.findings import Findings
from benchmarks.mixed.report import write_report
from benchmarks.mixed.sets import ADULT, HALFSPACES, PREFIXES, SETS, STATE, all_questions
from benchmarks.mixed.studies import crossover, downstream, figure_1, speed

FOLDER = Path("docs/results")
EPSILONS = (0.07, 0.23, 0.52, 0.74, 1.0)
"""The epsilons of the paper."""
RUNS = 3


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mixed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    results = argparse.ArgumentParser(add_help=False)
    results.add_argument("--results", type=Path, default=FOLDER, help="folder of JSON lines")
    asked = argparse.ArgumentParser(add_help=False)
    asked.add_argument("--state", default=STATE)
    asked.add_argument("--prefixes", type=int, default=PREFIXES, help="how many are asked")
    asked.add_argument("--halfspaces", type=int, default=HALFSPACES, help="how many are asked")
    repeated = argparse.ArgumentParser(add_help=False)
    repeated.add_argument("--runs", type=int, default=RUNS)
    repeated.add_argument("--again", action="store_true", help="also what the file already has")

    run = commands.add_parser("run", parents=[results, asked], help="run a grid of releases")
    add_names(run, "set", SETS)
    add_names(run, "workload", list(all_questions()))
    add_grid_options(run, epsilons=EPSILONS, runs=RUNS)

    shared = [results, repeated]
    commands.add_parser("adult", parents=shared, help="ADULT, as the paper's code was measured")
    commands.add_parser("figure-1", parents=shared, help="three prefixes on one column")
    commands.add_parser("crossover", parents=shared, help="with and without crossovers")
    train = commands.add_parser("downstream", parents=shared, help="train on synthetic rows")
    train.add_argument("--epsilon", nargs="+", type=float, default=EPSILONS, dest="epsilons")
    commands.add_parser("speed", parents=shared, help="candidates scored per second")

    report = commands.add_parser("report", parents=[results, asked], help="write tables and plots")
    report.add_argument("--output", type=Path, default=FOLDER, help="folder")
    return parser.parse_args()


def main() -> None:
    """Measure or show."""
    given = parse()
    outcomes, studies = given.results / "mixed.jsonl", given.results / "mixed-studies.jsonl"
    match given.command:
        case "run":
            run_questions(given, outcomes)
        case "report":
            questions = all_questions(prefixes=given.prefixes, halfspaces=given.halfspaces)
            write_report(
                questions, read(outcomes), given.output, state=given.state, studies=studies
            )
        case "adult":
            run_grid([ADULT], Grid((1.0,), given.runs), results=outcomes, again=given.again)
        case study:
            run_study(given, Findings(studies, study))


def run_questions(given: argparse.Namespace, outcomes: Path) -> None:
    """Compare mechanisms on the chosen columns and questions."""
    questions = all_questions(prefixes=given.prefixes, halfspaces=given.halfspaces)
    chosen = [
        comparison
        for name, asked in questions.items()
        if name in given.workloads
        for comparison in asked.comparisons(given.sets, given.state).values()
    ]
    run_grid(chosen, grid_of(given), results=outcomes, again=given.again)


def run_study(given: argparse.Namespace, findings: Findings) -> None:
    """Measure what a study has not measured yet."""
    match given.command:
        case "figure-1":
            figure_1.measure(findings, runs=given.runs, again=given.again)
        case "crossover":
            crossover.measure(findings, runs=given.runs, again=given.again)
        case "downstream":
            downstream.measure(
                findings, epsilons=given.epsilons, runs=given.runs, again=given.again
            )
        case "speed":
            speed.measure(findings, runs=given.runs, again=given.again)


if __name__ == "__main__":
    main()
