"""Tables and plots of results, for the terminal and for the documentation."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.comparison.claims import section_of_claims
from benchmarks.comparison.plots import Mark, save_plot
from benchmarks.comparison.problem import Comparison
from benchmarks.comparison.summary import Summary, summarise
from benchmarks.comparison.tables import at_largest_epsilon, by_epsilon, size_of
from benchmarks.households.claims import check_claims
from benchmarks.households.outcomes import LEVELS, TwoLevelOutcomes, at_level
from scrim.spec.workload.hierarchical import Level

INTRODUCTION = """# Benchmark of households and the people in them

What `make bench-households` measured, after Liu and Wu (2022), Towards Differentially Private Query
Release for Hierarchical Data. Each figure is the mean over some runs of a release, ± one standard
error: the mechanism's defaults where the title does not say otherwise, delta 1/n², n synthetic
households, where n is the number of private ones. Households are groups, and the people in them
individuals. An error is the difference between a query's answer and the truth, as a fraction of the
groups for queries that count groups, and of the individuals for those that count individuals; max and
mean are over all queries of a level. The truth is known because the data is public: households of New
York in the ACS of 2024, with [columns](../data.md#households-and-the-people-in-them) near those of the
paper. Seconds are those of the whole job; processor seconds add up its threads.

The paper uses the same noise for both units. That is correct for people alone: a household changes counts
by more ([section 3](../privacy.md#3-sensitivities)). Each unit therefore has its own tables.

`random_join` is the baseline without mechanisms for groups. Half of the budget releases the table of
households by `gem`, with the size of the household as another column. The other half releases the table of
people, who are then assigned to the places in synthetic households at random. The noise of each table
follows from what one unit changes in it: one household and as many people as it may have; or, for a person,
one row of each (two rows of households if people are added or removed, because a person who joins a
household changes its size). Its only answers are those of its rows.

An interrupted measurement can be continued; the tables show the results so far:

```sh
make bench-households
make bench-households SETS="small-person small-household" EPSILONS="0.5 1" RUNS=1
```
"""


def write_report(
    comparisons: Sequence[Comparison], outcomes: TwoLevelOutcomes, folder: Path
) -> None:
    """Print all tables; write households.md and one plot for each comparison that was measured."""
    folder.mkdir(parents=True, exist_ok=True)
    sections = [INTRODUCTION, *section_of_claims(check_claims(outcomes, comparisons))]
    for comparison in comparisons:
        sections += _section(comparison, outcomes, folder)
    (folder / "households.md").write_text("\n".join(sections))


def _section(comparison: Comparison, outcomes: TwoLevelOutcomes, folder: Path) -> list[str]:
    """A plot and tables of both levels; empty if nothing was measured."""
    by_level: dict[Level, list[Summary]] = {
        level: summarise(at_level(outcomes, level), comparison) for level in LEVELS
    }
    if not any(by_level.values()):
        return []
    plot = f"households-{comparison.name}.svg"
    save_plot(comparison.title, _marks(by_level), folder / plot)
    labelled = [
        replace(summary, mechanism=f"{level}s: {summary.mechanism}")
        for level, summaries in by_level.items()
        for summary in summaries
    ]
    tables = [at_largest_epsilon(labelled), *by_epsilon(labelled)]
    for table in tables:
        table.show(comparison.title)
    sizes = "\n".join(
        f"- {level}s: {size_of(at_level(outcomes, level), comparison)}" for level in LEVELS
    )
    parts = [
        f"## {comparison.title}",
        f"`--set {comparison.name}`",
        sizes,
        f"![Error against epsilon: {comparison.title}]({plot})",
        *(table.in_markdown() for table in tables),
    ]
    return ["\n\n".join(parts) + "\n"]


def _marks(by_level: dict[Level, list[Summary]]) -> list[Mark]:
    """Marks of groups in the first row, of individuals in the second."""
    return [
        Mark(f"in {level}s", summary.mechanism, summary.epsilon, summary.answers)
        for level, summaries in by_level.items()
        for summary in summaries
    ]
