"""Tables and plots of what was measured, for the terminal and for the documentation."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.products.outcomes import Outcomes
from benchmarks.products.plots import save_plot
from benchmarks.products.sets import Comparison
from benchmarks.products.summary import ErrorEstimates, Summary, summarise
from benchmarks.report import markdown_table, print_table

INTRODUCTION = """# Benchmark of whole releases

What `make bench-products` measured. Each figure is the mean over some runs of a release, ± one
standard error: the mechanism's defaults, replace-one neighbours, delta 1/n², n synthetic rows,
where n is the number of private rows. An error is the difference between a query's answer and the
truth, as a fraction of the rows; max and mean are over all asked queries. The truth is known
because the data is public ([where to get it](../data.md)). Seconds are those of the whole job;
processor seconds add up its threads.

Measuring goes on where it was broken off, and the tables show what is there:

```sh
make bench-products
make bench-products SETS="adult loans" EPSILONS="0.5 1" RUNS=3
```
"""


@dataclass(frozen=True)
class Reference:
    """What other public code reaches on the same queries, measured once."""

    name: str
    largest_error: float
    mean_error: float
    seconds: float | str


REFERENCES = {
    ("adult", 1.0): (
        Reference("GEM, the paper's code, 100 rounds", 0.0216, 2.4e-4, 601.0),
        Reference("Private-GSD, its public code, 2,000 rows", 0.0081, 1.2e-4, 314.0),
        Reference("MST of google/dpsynth", 0.037, 1.4e-4, 34.0),
        Reference("AIM-GDP of google/dpsynth, 10 rounds", 0.045, 1.05e-4, 211.0),
        Reference("a bootstrap sample of the true rows: no privacy", 0.0056, 2.9e-5, "–"),
    )
}
"""By comparison and epsilon."""


@dataclass(frozen=True)
class Figures:
    """A table with its title."""

    title: str
    header: list[str]
    rows: list[list[object]]


def write_report(comparisons: Sequence[Comparison], outcomes: Outcomes, folder: Path) -> None:
    """Print all tables; write products.md and one plot for each comparison that was measured."""
    folder.mkdir(parents=True, exist_ok=True)
    sections = [INTRODUCTION]
    for comparison in comparisons:
        summaries = summarise(outcomes, comparison)
        if not summaries:
            continue
        plot = f"products-{comparison.name}.svg"
        save_plot(comparison.title, summaries, folder / plot)
        tables = _tables(comparison, summaries)
        for table in tables:
            print_table(f"{comparison.title}: {table.title}", table.header, table.rows)
        sections.append(_section(comparison, _about(outcomes, comparison), plot, tables))
    (folder / "products.md").write_text("\n".join(sections))


def _about(outcomes: Outcomes, comparison: Comparison) -> str:
    """How large the problem is, and a warning where the figures are not of one kind."""
    found = [o for task, o in outcomes.items() if task.comparison == comparison.name]
    size = f"{found[0].rows:,} private rows, {found[0].queries:,} queries."
    states = len({outcome.code for outcome in found})
    warning = f" **Measured with {states} different states of the code.**" if states > 1 else ""
    return size + warning


def _section(comparison: Comparison, about: str, plot: str, tables: list[Figures]) -> str:
    parts = [
        f"## {comparison.title}",
        f"{about} `--set {comparison.name}`",
        f"![Error against epsilon: {comparison.title}]({plot})",
    ]
    for table in tables:
        title = table.title[0].upper() + table.title[1:]
        parts += [f"{title}:", markdown_table(table.header, table.rows)]
    return "\n\n".join(parts) + "\n"


def _tables(comparison: Comparison, summaries: list[Summary]) -> list[Figures]:
    """All figures at the largest epsilon, other code beside them, and errors at every epsilon."""
    largest = max(summary.epsilon for summary in summaries)
    at_largest = [summary for summary in summaries if summary.epsilon == largest]
    tables = [_details(largest, at_largest)]
    for (name, epsilon), references in REFERENCES.items():
        ours = [summary for summary in summaries if summary.epsilon == epsilon]
        if name == comparison.name and ours:
            tables.append(_beside_references(epsilon, ours, references))
    if any(summary.epsilon != largest for summary in summaries):
        tables.append(_by_epsilon(summaries))
    return tables


def _details(epsilon: float, summaries: list[Summary]) -> Figures:
    return Figures(
        f"epsilon {epsilon:g}",
        [
            *("", "answers: max", "answers: mean", "rows: max", "rows: mean"),
            *("seconds", "processor seconds", "runs"),
        ],
        [
            [
                summary.mechanism,
                *(summary.answers.max, summary.answers.mean),
                *_of_rows(summary),
                *(summary.seconds, summary.processor_seconds, summary.runs),
            ]
            for summary in summaries
        ],
    )


def _of_rows(summary: Summary) -> tuple[object, object]:
    released = summary.released_rows
    return ("–", "–") if released is None else (released.max, released.mean)


def _beside_references(
    epsilon: float, ours: list[Summary], references: Sequence[Reference]
) -> Figures:
    """Answers and rows of ours apart: most other code releases rows, which err more."""
    return Figures(
        f"beside other public code, epsilon {epsilon:g}; its figures were measured once, elsewhere, so "
        "seconds compare only roughly",
        ["", "max error", "mean error", "seconds"],
        [
            *(
                [f"{summary.mechanism}: {source}", errors.max, errors.mean, summary.seconds]
                for summary in ours
                for source, errors in (
                    ("answers", summary.answers),
                    ("rows", summary.released_rows),
                )
                if errors is not None
            ),
            *([r.name, r.largest_error, r.mean_error, r.seconds] for r in references),
        ],
    )


def _by_epsilon(summaries: list[Summary]) -> Figures:
    """Max and mean error of the answers, a column for each epsilon."""
    epsilons = sorted({summary.epsilon for summary in summaries})
    found = {(s.mechanism, s.epsilon): s.answers for s in summaries}
    return Figures(
        "max and mean error of the answers at each epsilon",
        ["", *(f"{epsilon:g}" for epsilon in epsilons)],
        [
            [mechanism, *(_pair(found.get((mechanism, epsilon))) for epsilon in epsilons)]
            for mechanism in dict.fromkeys(s.mechanism for s in summaries)
        ],
    )


def _pair(errors: ErrorEstimates | None) -> str:
    return "–" if errors is None else f"{errors.max.mean:.2g} / {errors.mean.mean:.2g}"
