"""`run` measures releases, `report` compares them with their forecasts, `fit` prints new constants.

Constants are fitted on tuning tables. The report leaves each of them out of a fit of its own and forecasts it
with that; generated tables and judging tables are never fitted.
"""

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.comparison.grid import run_grid
from benchmarks.comparison.options import add_grid_options, add_names, grid_of
from benchmarks.products.sets import COMPARISONS
from benchmarks.quality.fitting import SHARED, Measured, fitted
from benchmarks.quality.releases import measured
from benchmarks.quality.tables import FITTED, HELD_OUT, JUDGING_SETS, SETS
from benchmarks.report import markdown_table
from synth.planning.constants import REACH, Constants
from synth.planning.expected import Expected

RESULTS = Path("docs/results/forecasts.jsonl")
PRODUCTS = Path("docs/results/products.jsonl")
"""Releases of the mechanisms that RESULTS lacks."""
FORECASTS = Path("docs/results/forecasts-left-out.jsonl")
"""Each release of the report with its forecast; tests read it."""
OUTPUT = Path("docs/results/forecasts.md")
EPSILONS = (1.0, 0.1, 10.0)
FAMILIES = ("adult", "loans", "acs")
"""Tables whose names begin alike are parts of one table, and are left out together."""
LEFT_OUT, GENERATED, JUDGED = "tuning, left out", "generated, never fitted", "judging, never fitted"
MOST_USED = ("generative_network", "relaxed_projection", "aim", "gaussian", "private_gsd")
FACTORS = (1.5, 2.0, 3.0)
ABOUT = """`make bench-forecasts` writes this page. A release is within a factor if the larger of the forecast
and the measured error is at most that many times the smaller; the range is the one that previews state.
Tuning tables (ADULT, LOANS, ACS of Ohio, Pennsylvania and New York) are forecast by constants that were
fitted to the other two. Generated tables and judging tables were never fitted. `gaussian` has no fitted
constants. The other mechanisms are taken from docs/results/products.jsonl, some of it older code."""
LINE = ("release", "epsilon", "variation", "forecast", "max error", "forecast")
FIELDS = ("mean_total_variation", "max_error")
"""The mean absolute error is the mean total variation on another scale, so their ratios are the same."""


@dataclass(frozen=True)
class Compared:
    """A release, what was forecast of it, and which constants that used."""

    kind: str
    release: Measured
    forecast: Expected

    def ratio(self, field: str) -> float:
        """The forecast, per what was measured."""
        return float(getattr(self.forecast, field) / getattr(self.release.errors, field))

    def fields(self) -> dict[str, Any]:
        """A line of JSON."""
        return {
            "kind": self.kind,
            "table": self.release.table,
            "mechanism": self.release.mechanism,
            "epsilon": self.release.epsilon,
            "measured": asdict(self.release.errors),
            "forecast": asdict(self.forecast),
        }


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
        return
    found = compare(tuning)
    FORECASTS.write_text("".join(json.dumps(each.fields()) + "\n" for each in found))
    report = write_report(found)
    OUTPUT.write_text(report)
    print(report)
    for kind in (LEFT_OUT, GENERATED, JUDGED):
        lines = sorted(_line(each) for each in found if each.kind == kind)
        print(f"## Every release: {kind}\n\n{markdown_table(LINE, lines)}\n")


def compare(tuning: Sequence[Measured]) -> list[Compared]:
    """Forecasts of all releases, by constants that were not fitted to their tables."""
    found = [each for family in FAMILIES for each in _left_out(tuning, family)]
    gaussian = measured([each.comparison for each in FITTED], [RESULTS])
    found += [
        Compared(LEFT_OUT, each, each.stated) for each in gaussian if each.mechanism == "gaussian"
    ]
    for kind, sets in ((GENERATED, HELD_OUT), (JUDGED, JUDGING_SETS)):
        releases = measured([each.comparison for each in sets], [RESULTS])
        found += [Compared(kind, each, each.stated) for each in releases]
    return found


def write_report(found: Sequence[Compared]) -> str:
    """The shares of forecasts near what was measured, by kinds of tables and by mechanisms."""
    apart = [each for each in found if each.kind == LEFT_OUT]
    judged = [each for each in found if each.kind == JUDGED]
    return (
        "\n\n".join(
            [
                "# Forecast errors beside measured ones",
                ABOUT,
                *(_share_table(field, found) for field in FIELDS),
                "## Furthest off: tuning tables, left out",
                _furthest(apart),
                *(["## Furthest off: judging tables", _furthest(judged)] if judged else []),
            ]
        )
        + "\n"
    )


def _tuning_releases() -> list[Measured]:
    here = measured([each.comparison for each in FITTED], [RESULTS])
    known = {each.mechanism for each in here}
    others = [
        each
        for each in COMPARISONS
        if each.name not in ("adult-public-one-sex", "adult-public-columns")
    ]
    further = [each for each in measured(others, [PRODUCTS]) if each.mechanism not in known]
    return [each for each in (*here, *further) if each.mechanism != "gaussian"]


def _left_out(tuning: Sequence[Measured], family: str) -> list[Compared]:
    """Forecasts of a table's releases by constants that were fitted to the others."""
    inside = [each for each in tuning if each.table.startswith(family)]
    constants = fitted([each for each in tuning if not each.table.startswith(family)])
    return [Compared(LEFT_OUT, each, each.forecast(constants)) for each in inside]


def _share_table(field: str, found: Sequence[Compared]) -> str:
    rows = [
        [kind, group, len(chosen), *_shares(field, chosen)]
        for kind in (LEFT_OUT, GENERATED, JUDGED)
        for group, chosen in _groups([each for each in found if each.kind == kind])
        if chosen
    ]
    header = [
        *("tables", "releases", "number"),
        *(f"within a factor {factor:g}" for factor in FACTORS),
        "in the range",
    ]
    return f"## {field.replace('_', ' ').capitalize()}\n\n{markdown_table(header, rows)}"


def _groups(found: Sequence[Compared]) -> Iterator[tuple[str, list[Compared]]]:
    """All releases, and those of each table and mechanism of which there are several."""
    yield "all", list(found)
    for family in FAMILIES:
        yield family, [each for each in found if each.release.table.startswith(family)]
    for name in MOST_USED:
        yield f"`{name}`", [each for each in found if each.release.mechanism == name]
    yield "others", [each for each in found if each.release.mechanism not in MOST_USED]


def _shares(field: str, found: Sequence[Compared]) -> list[str]:
    ratios = [each.ratio(field) for each in found]
    reach = REACH.mean if field == FIELDS[0] else REACH.largest
    inside = [[abs(math.log(ratio)) <= math.log(factor) for ratio in ratios] for factor in FACTORS]
    inside.append([reach.low <= 1 / ratio <= reach.high for ratio in ratios])
    return [f"{sum(each) / len(each):.0%}" for each in inside]


def _furthest(found: Sequence[Compared], most: int = 20) -> str:
    """The releases whose mean total variation was forecast worst."""
    ordered = sorted(found, key=lambda each: -abs(math.log(each.ratio(FIELDS[0]))))
    return markdown_table(LINE, [_line(each) for each in ordered[:most]])


def _line(found: Compared) -> list[str | float]:
    """A release with its errors, each beside its forecast."""
    release = found.release
    errors = [
        float(getattr(each, field)) for field in FIELDS for each in (release.errors, found.forecast)
    ]
    return [f"{release.table}, {release.mechanism}", release.epsilon, *errors]


def _in_code(constants: Constants) -> str:
    """The constants as synth/planning/constants.py writes them, in two digits."""
    lines = [f"    {name}={getattr(constants, name):.2g}," for name in SHARED]
    fits = [
        f'        "{name}": MechanismFit({fit.noise:.2g}, {fit.misfit:.2g}, {fit.peak:.2g}),'
        for name, fit in sorted(constants.fits.items())
    ]
    return "\n".join(["CONSTANTS = Constants(", *lines, "    fits={", *fits, "    },", ")"])


if __name__ == "__main__":
    main()
