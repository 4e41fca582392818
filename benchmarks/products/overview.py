"""One table over all mechanisms of the catalogue, at one epsilon."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.comparison.outcomes import Outcomes
from benchmarks.comparison.problem import Comparison
from benchmarks.comparison.summary import Summary, summarise
from benchmarks.comparison.tables import Figures
from scrim.spec.mechanism import MECHANISMS, MechanismSpec

SETS = ("adult", "adult-reduced", "loans", "acs-pa", "loans-pairs")
EPSILON = 1.0

INTRODUCTION = f"""# All mechanisms

What `make bench-all` measured: every mechanism of the catalogue with its defaults at epsilon {EPSILON:g},
on the tables and under the conditions of [products.md](products.md). A cell has the largest and the
mean error of the model's answers, processor seconds, and the number of runs where it is not one. Where
a cell has no figures, it says why:

- *one weight per combination*: the table has more combinations of values than a histogram can hold;
- *public data*: the set has none;
- *groups*: the mechanism is for two linked tables, see [households.md](households.md);
- *not measured*: no run has finished so far.

Figures may come from different states of the code; products.md says where. `make bench-games` measures
only the games, the graphical models and `gem_plus`.
"""


def write_overview(comparisons: Sequence[Comparison], outcomes: Outcomes, folder: Path) -> None:
    """Print the table, and write all.md."""
    folder.mkdir(parents=True, exist_ok=True)
    shown = [comparison for name in SETS for comparison in comparisons if comparison.name == name]
    table = overview(shown, outcomes)
    table.show("All mechanisms")
    titles = "\n".join(f"- `{comparison.name}`: {comparison.title}" for comparison in shown)
    (folder / "all.md").write_text("\n".join([INTRODUCTION, titles, "", table.in_markdown(), ""]))


def overview(comparisons: Sequence[Comparison], outcomes: Outcomes) -> Figures:
    """A line for each mechanism, a column for each set."""
    found = {
        (comparison.name, summary.mechanism): summary
        for comparison in comparisons
        for summary in summarise(outcomes, comparison)
        if summary.epsilon == EPSILON
    }
    return Figures(
        f"epsilon {EPSILON:g}; max error / mean error / processor seconds",
        ["", *(comparison.name for comparison in comparisons)],
        [
            [name, *(_cell(mechanism, found.get((c.name, name)), c) for c in comparisons)]
            for mechanism in MECHANISMS
            for name in [mechanism.catalogue_name()]
        ],
    )


def _cell(mechanism: type[MechanismSpec], summary: Summary | None, comparison: Comparison) -> str:
    if summary is None:
        return f"– {_reason(mechanism, comparison)}"
    errors, seconds = summary.answers, summary.processor_seconds
    runs = f" ({summary.runs} runs)" if summary.runs > 1 else ""
    return f"{errors.max.mean:.2g} / {errors.mean.mean:.2g} / {seconds:,.0f}{runs}"


def _reason(mechanism: type[MechanismSpec], comparison: Comparison) -> str:
    """Why there are no figures."""
    if mechanism.two_level:
        return "groups"
    if mechanism.catalogue_name() in comparison.mechanisms:
        return "not measured"
    if mechanism.needs_public_data:
        return "public data"
    return "one weight per combination" if mechanism.needs_histogram else "not measured"
