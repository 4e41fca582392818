"""`run` measures releases, `report` compares them with their forecasts, `fit` prints new constants.

Constants are fitted on tuning tables. Each of them is also left out of a fit of its own and forecast with
that; generated tables are never fitted.
"""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

from benchmarks.comparison.grid import run_grid
from benchmarks.comparison.options import add_grid_options, add_names, grid_of
from benchmarks.products.sets import COMPARISONS
from benchmarks.quality.fitting import Measured, fitted
from benchmarks.quality.releases import measured
from benchmarks.quality.tables import FITTED, HELD_OUT, JUDGING_SETS, SETS
from benchmarks.report import markdown_table
from synth.planning.constants import Constants
from synth.planning.expected import Expected

RESULTS = Path("docs/results/forecasts.jsonl")
PRODUCTS = Path("docs/results/products.jsonl")
OUTPUT = Path("docs/results/forecasts.md")
EPSILONS = (1.0, 0.1, 10.0)
FAMILIES = ("adult", "loans", "acs")
"""Tables whose names begin alike are parts of one table, and are left out together."""
FACTORS = (1.5, 2.0, 3.0)
FIELDS = ("mean_total_variation", "max_error")
"""The mean absolute error is the mean total variation on another scale, so their ratios are the same."""

Forecasts = Sequence[tuple[Measured, Expected]]


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.quality.forecasts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run a grid of releases")
    add_names(run, "set", [each.name for each in SETS])
    run.set_defaults(sets=[each.name for each in (*FITTED, *HELD_OUT)])
    add_grid_options(run, epsilons=EPSILONS, runs=1)
    commands.add_parser("report", help="print forecasts beside what was measured")
    commands.add_parser("fit", help="fit the constants of synth/planning/constants.py again")
    return parser.parse_args()


def main() -> None:
    """Measure, show or fit."""
    given = parse()
    if given.command == "run":
        chosen = [each.comparison for each in SETS if each.name in given.sets]
        run_grid(chosen, grid_of(given), results=RESULTS, again=given.again)
        return
    tuning = _tuning_releases()
    if given.command == "fit":
        print(_in_code(fitted(tuning)))
    else:
        report = write_report(tuning)
        OUTPUT.write_text(report)
        print(report)


def write_report(tuning: Sequence[Measured]) -> str:
    """Forecasts and measurements: of fitted tables, with each left out, and of tables never fitted."""
    found = [("fitted tables", [(each, each.stated) for each in tuning])]
    found += [(f"{family} left out of the fit", _left_out(tuning, family)) for family in FAMILIES]
    apart = [pair for _, pairs in found[1:] for pair in pairs]
    found.append(("all tables, each left out", apart))
    answers = measured([each.comparison for each in SETS], [RESULTS])
    gaussian = [(each, each.stated) for each in answers if each.mechanism == "gaussian"]
    found.append(("answers of gaussian, in closed form", gaussian))
    for title, sets in (("generated tables", HELD_OUT), ("judging tables", JUDGING_SETS)):
        names = {each.name for each in sets}
        chosen = [each for each in answers if each.table in names and each.mechanism != "gaussian"]
        if chosen:
            found.append((f"{title}, never fitted", [(each, each.stated) for each in chosen]))
    return (
        "\n\n".join(
            [
                "# Forecast errors beside measured ones",
                "`make bench-forecasts` writes this page. A release is within a factor if the larger of the "
                "forecast and the measured error is at most that many times the smaller.",
                *(_share_table(field, found) for field in FIELDS),
                "## Furthest off with its table left out",
                _furthest(apart),
                "## Tables that were never fitted",
                _furthest([pair for title, pairs in found if "never" in title for pair in pairs]),
            ]
        )
        + "\n"
    )


def _tuning_releases() -> list[Measured]:
    comparisons = [
        *(each.comparison for each in FITTED),
        *(
            each
            for each in COMPARISONS
            if each.name not in ("adult-public-one-sex", "adult-public-columns")
        ),
    ]
    found = measured(comparisons, [PRODUCTS, RESULTS])
    return [each for each in found if each.mechanism != "gaussian" and each.epsilon in EPSILONS]


def _left_out(tuning: Sequence[Measured], family: str) -> list[tuple[Measured, Expected]]:
    """Forecasts of a table's releases by constants that were fitted to the others."""
    inside = [each for each in tuning if each.table.startswith(family)]
    constants = fitted([each for each in tuning if not each.table.startswith(family)])
    return [(each, each.forecast(constants)) for each in inside]


def _share_table(field: str, found: Sequence[tuple[str, Forecasts]]) -> str:
    rows = [
        [title, len(pairs), *(f"{_share_within(factor, field, pairs):.0%}" for factor in FACTORS)]
        for title, pairs in found
        if pairs
    ]
    header = ["releases", "number", *(f"within a factor {factor:g}" for factor in FACTORS)]
    return f"## {field.replace('_', ' ').capitalize()}\n\n{markdown_table(header, rows)}"


def _share_within(factor: float, field: str, pairs: Forecasts) -> float:
    within = [abs(math.log(_ratio(field, *pair))) <= math.log(factor) for pair in pairs]
    return sum(within) / len(within)


def _ratio(field: str, release: Measured, expected: Expected) -> float:
    return float(getattr(expected, field) / getattr(release.errors, field))


def _furthest(pairs: Forecasts, most: int = 20) -> str:
    """The releases whose mean total variation was forecast worst."""
    ordered = sorted(pairs, key=lambda pair: -abs(math.log(_ratio(FIELDS[0], *pair))))
    rows = [
        [
            f"{release.table}, {release.mechanism}",
            release.epsilon,
            *(
                float(getattr(errors, field))
                for field in FIELDS
                for errors in (release.errors, expected)
            ),
        ]
        for release, expected in ordered[:most]
    ]
    header = ["release", "epsilon", "variation", "forecast", "max error", "forecast"]
    return markdown_table(header, rows)


def _in_code(constants: Constants) -> str:
    """The constants as synth/planning/constants.py writes them, in two digits."""
    shared = ("spread", "dependence", "unmeasured", "drawn", "peak")
    lines = [f"    {name}={getattr(constants, name):.2g}," for name in shared]
    fits = [
        f'        "{name}": MechanismFit({fit.noise:.2g}, {fit.misfit:.2g}, {fit.peak:.2g}),'
        for name, fit in sorted(constants.fits.items())
    ]
    return "\n".join(["CONSTANTS = Constants(", *lines, "    fits={", *fits, "    },", ")"])


if __name__ == "__main__":
    main()
