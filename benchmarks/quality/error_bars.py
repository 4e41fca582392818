"""`python -m benchmarks.quality.error_bars`: one line for each table, epsilon, mechanism and kind."""

import argparse
from collections.abc import Sequence

from benchmarks.quality.coverage import LARGE, Coverage, measure
from benchmarks.quality.covered_sets import SETS, CoveredSet
from benchmarks.report import print_table

EPSILONS = (0.1, 1.0, 10.0)
HEADER = [
    "table, epsilon, mechanism, kind",
    *(
        "answers",
        "covered",
        f"of {LARGE}+ rows",
        "half width",
        "times constant",
        "job s",
        "added s",
    ),
]


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.quality.error_bars", description=__doc__
    )
    parser.add_argument("--set", nargs="+", choices=[each.name for each in SETS], dest="sets")
    parser.add_argument("--epsilon", nargs="+", type=float, default=EPSILONS, dest="epsilons")
    parser.add_argument("--mechanism", nargs="+", dest="mechanisms", help="only these")
    parser.add_argument("--runs", type=int, default=1)
    return parser.parse_args(arguments)


def lines_of(each: CoveredSet, given: argparse.Namespace) -> list[list[object]]:
    """The releases of one table."""
    asked = each.load()
    true = asked.count()
    lines = []
    for epsilon in given.epsilons:
        for mechanism in given.mechanisms or each.mechanisms:
            for _ in range(given.runs):
                found = measure(asked, true, mechanism, epsilon=epsilon)
                times = [found.processor_seconds, found.added_seconds]
                title = f"{each.name}, {epsilon:g}, {mechanism}"
                lines += [[f"{title}, {c.kind}", *figures(c), *times] for c in found.coverages]
    return lines


def figures(found: Coverage) -> list[object]:
    """The columns of a line."""
    large = "-" if found.covered_large is None else f"{found.covered_large:.3f}"
    return [found.queries, f"{found.covered:.3f}", large, found.half_width, found.relative_width]


def main() -> None:
    """Print the tables on which the constants were chosen, and the others apart."""
    given = parse()
    wanted = [each for each in SETS if not given.sets or each.name in given.sets]
    for tuned, title in ((True, "Tables of tuning"), (False, "Held-out tables")):
        for each in wanted:
            if each.tuned == tuned:
                print_table(f"{title}: {each.name}", HEADER, lines_of(each, given))


if __name__ == "__main__":
    main()
