"""Tables and plots of results, for the terminal and for the documentation."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.comparison.claims import section_of_claims
from benchmarks.comparison.outcomes import Outcomes
from benchmarks.comparison.plots import Mark, save_plot
from benchmarks.comparison.problem import Comparison
from benchmarks.comparison.summary import Summary, summarise
from benchmarks.comparison.tables import (
    Figures,
    Reference,
    at_largest_epsilon,
    beside_references,
    by_epsilon,
    size_of,
)
from benchmarks.products.claims import check_claims

INTRODUCTION = """# Benchmark of whole releases

What `make bench-products` measured. Each figure is the mean over some runs of a release, ± one
standard error: the mechanism's defaults, replace-one neighbours, delta 1/n², n synthetic rows,
where n is the number of private rows. An error is the difference between a query's answer and the
truth, as a fraction of the rows; max and mean are over all asked queries. The truth is known
because the data is public ([where to get it](../data.md)). Seconds are those of the whole job;
processor seconds add up its threads.

An interrupted measurement can be continued; the tables show the results so far:

```sh
make bench-products
make bench-products SETS="adult loans" EPSILONS="0.5 1" RUNS=3
```
"""

REFERENCES = {
    ("adult", 1.0): (
        Reference("GEM, the paper's code, 100 rounds", 0.0216, 2.4e-4, 601.0),
        Reference("Private-GSD, its public code, 2,000 rows", 0.0081, 1.2e-4, 314.0),
        Reference("MST of google/dpsynth", 0.037, 1.4e-4, 34.0),
        Reference("AIM-GDP of google/dpsynth, 10 rounds", 0.045, 1.05e-4, 211.0),
        Reference("AIM as published, fitted by mbi 2.0, 32 rounds", 0.0176, 8.2e-5, 303.0),
        Reference("a bootstrap sample of the true rows: no privacy", 0.0056, 2.9e-5, "–"),
    )
}
"""Errors of other code, by comparison and epsilon."""


def write_report(comparisons: Sequence[Comparison], outcomes: Outcomes, folder: Path) -> None:
    """Print all tables; write products.md and one plot for each comparison that was measured."""
    folder.mkdir(parents=True, exist_ok=True)
    sections = [INTRODUCTION, *section_of_claims(check_claims(comparisons, outcomes))]
    for comparison in comparisons:
        summaries = summarise(outcomes, comparison)
        if not summaries:
            continue
        plot = f"products-{comparison.name}.svg"
        save_plot(comparison.title, _marks(summaries), folder / plot)
        tables = _tables(comparison, summaries)
        for table in tables:
            table.show(comparison.title)
        sections.append(_section(comparison, size_of(outcomes, comparison), plot, tables))
    (folder / "products.md").write_text("\n".join(sections))


def _marks(summaries: Sequence[Summary]) -> list[Mark]:
    """Marks of the answers in the first row, of the released rows in the second."""
    answers = [Mark("of the model's answers", s.mechanism, s.epsilon, s.answers) for s in summaries]
    rows = [
        Mark("of the released rows", s.mechanism, s.epsilon, s.released_rows)
        for s in summaries
        if s.released_rows is not None
    ]
    return answers + rows


def _section(comparison: Comparison, size: str, plot: str, tables: list[Figures]) -> str:
    parts = [
        f"## {comparison.title}",
        f"{size} `--set {comparison.name}`",
        f"![Error against epsilon: {comparison.title}]({plot})",
        *(table.in_markdown() for table in tables),
    ]
    return "\n\n".join(parts) + "\n"


def _tables(comparison: Comparison, summaries: list[Summary]) -> list[Figures]:
    """All results at the largest epsilon, a comparison with other code, and errors at every epsilon."""
    tables = [at_largest_epsilon(summaries)]
    for (name, epsilon), references in REFERENCES.items():
        ours = [summary for summary in summaries if summary.epsilon == epsilon]
        if name == comparison.name and ours:
            tables.append(beside_references(ours, references))
    return tables + by_epsilon(summaries)
