"""`python -m benchmarks.draws`: coverage of nominal 95% intervals over many simulated releases."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.draws.problems import PROBLEMS, available
from benchmarks.draws.regression import (
    Drawn,
    Rule,
    combined,
    from_one_model,
    naive,
    of_the_table,
    without_bias,
)
from benchmarks.draws.simulation import Simulated, simulate
from benchmarks.report import print_table

MECHANISMS: Mapping[str, Mapping[str, Any]] = {
    "aim": {"name": "aim"},
    "private_gsd": {"name": "private_gsd", "mode": "one_shot", "rows": 2000},
    "relaxed_projection": {"name": "relaxed_projection", "steps": 300},
    "pep": {"name": "pep", "rounds": 18},
}
HEADER = [
    "table, epsilon, mechanism",
    "releases",
    "pairs measured",
    "U + D",
    "worst",
    "where measured",
    "table: D",
    "worst",
    "U + B",
    "one model",
    "naive",
    "half / naive",
]


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.draws", description=__doc__)
    parser.add_argument("--set", nargs="+", choices=list(PROBLEMS), dest="sets")
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0], dest="epsilons")
    parser.add_argument("--mechanism", nargs="+", choices=list(MECHANISMS), dest="mechanisms")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--rows", type=int, default=10_000, help="of each private table")
    parser.add_argument("--synthetic-rows", type=int, default=10_000)
    return parser.parse_args(arguments)


def coverage(found: Sequence[Simulated], rule: Rule, *, of_table: bool = False) -> np.ndarray:
    """The share of intervals that cover, for each coefficient."""
    covered = [rule(each.drawn).covers(each.of_table if of_table else each.truth) for each in found]
    return np.asarray(np.mean(covered, axis=0))


def line_of(title: str, found: Sequence[Simulated]) -> list[object]:
    """The columns of a line; coverage is the mean over all coefficients, or the worst one's."""
    stated, table = coverage(found, combined), coverage(found, of_the_table, of_table=True)
    measured = [each for each in found if each.all_pairs]
    others = [coverage(found, rule).mean() for rule in (without_bias, from_one_model, naive)]
    return [
        title,
        len(found),
        f"{np.mean([each.all_pairs for each in found]):.2f}",
        *(f"{share:.3f}" for share in (stated.mean(), stated.min())),
        f"{coverage(measured, combined).mean():.3f}" if measured else "-",
        *(f"{share:.3f}" for share in (table.mean(), table.min())),
        *(f"{share:.3f}" for share in others),
        f"{np.median([_width(each.drawn) for each in found]):.2f}",
    ]


def _width(drawn: Drawn) -> float:
    return float(np.mean(combined(drawn).half / naive(drawn).half))


def main() -> None:
    """Print one line for each table, epsilon and mechanism; the table of tuning first."""
    given = parse()
    lines = []
    for name in given.sets or available():
        for epsilon in given.epsilons:
            for mechanism in given.mechanisms or MECHANISMS:
                problem = PROBLEMS[name]
                found = [
                    simulate(
                        problem,
                        MECHANISMS[mechanism],
                        epsilon=epsilon,
                        rows=given.rows,
                        released=given.synthetic_rows,
                        draws=given.draws,
                        seed=seed,
                    )
                    for seed in range(given.runs)
                ]
                kind = "tuning" if problem.is_tuned else "held out"
                lines.append(line_of(f"{name} ({kind}), {epsilon:g}, {mechanism}", found))
                print(*lines[-1], flush=True)
    print_table(f"{given.draws} draws, {given.rows:,} private rows", HEADER, lines)


if __name__ == "__main__":
    main()
