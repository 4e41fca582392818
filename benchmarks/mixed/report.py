"""Tables and plots of results, for the terminal and for the documentation."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.comparison.claims import section_of_claims
from benchmarks.comparison.outcomes import Outcomes
from benchmarks.comparison.plots import Mark, save_plot
from benchmarks.comparison.summary import Summary, summarise
from benchmarks.comparison.tables import (
    Figures,
    Reference,
    at_largest_epsilon,
    beside_references,
    by_epsilon,
    size_of,
)
from benchmarks.mixed.claims import check_claims
from benchmarks.mixed.findings import Findings, Study
from benchmarks.mixed.sets import ADULT, SETS, Questions
from benchmarks.mixed.studies import crossover, downstream, figure_1, speed

INTRODUCTION = """# Benchmark of tables with categories and numbers

What `make bench-mixed` measured, after Liu, Tang, Vietri and Wu (2023), Generating Private Synthetic
Data with Genetic Algorithms. Each figure is the mean over some runs of a release, ± one standard
error: replace-one neighbours, delta 1/n², n synthetic rows, where n is the number of private rows, and
the mechanism's defaults, except for the mode of `private_gsd`, which each title names. An error is the
difference between a query's answer and the truth, as a fraction of the rows; max and mean are over all
asked queries. The truth is known because the data is public: persons of the ACS of 2024 in the
[column sets](../data.md#column-sets-for-mixed-types) of the paper, as far as they are available. The
paper asks 200,000 prefixes and halfspaces and reports the best of several numbers of rounds; this
benchmark asks fewer queries, with one number of rounds.

An interrupted measurement can be continued; the tables show the results so far:

```sh
make bench-mixed
make bench-mixed SETS="mobility income" EPSILONS="0.23 1" RUNS=1
```
"""

ADULT_REFERENCES = (
    Reference(
        "Private-GSD, its public code, 2,000 rows, 56,000 generations", 0.0045, 4.1e-4, 269.0
    ),
)
STUDIES = (figure_1.STUDY, crossover.STUDY, downstream.STUDY, speed.STUDY)


def write_report(
    questions: Mapping[str, Questions],
    outcomes: Outcomes,
    folder: Path,
    *,
    state: str,
    studies: Path,
) -> None:
    """Print all tables; write mixed.md, and a plot for each kind of question that was measured."""
    folder.mkdir(parents=True, exist_ok=True)
    claims = check_claims(questions, outcomes, state)
    sections = [INTRODUCTION, *section_of_claims(claims)]
    for name, asked in questions.items():
        sections += _section_of_questions(name, asked, outcomes, folder, state=state)
    sections += _section_of_adult(outcomes)
    for study in STUDIES:
        sections += _section_of_study(study, Findings(studies, study.name), folder)
    (folder / "mixed.md").write_text("\n".join(sections))


def _section_of_questions(
    name: str, questions: Questions, outcomes: Outcomes, folder: Path, *, state: str
) -> list[str]:
    """One plot and one pair of tables for all column sets; empty if none was measured."""
    comparisons = questions.comparisons(SETS, state)
    by_set = {key: summarise(outcomes, comparison) for key, comparison in comparisons.items()}
    measured = {key: summaries for key, summaries in by_set.items() if summaries}
    if not measured:
        return []
    save_plot(questions.title, _marks(measured), folder / f"mixed-{name}.svg")
    labelled = [
        replace(summary, mechanism=f"{key}: {summary.mechanism}")
        for key, summaries in measured.items()
        for summary in summaries
    ]
    sizes = "\n".join(f"- {key}: {size_of(outcomes, comparisons[key])}" for key in measured)
    about = (
        f"Persons of {state}. `--workload {name}`\n\n{sizes}\n\n{_picture(name, questions.title)}"
    )
    return [_section(questions.title, about, [at_largest_epsilon(labelled), *by_epsilon(labelled)])]


def _marks(summaries: Mapping[str, Sequence[Summary]]) -> list[Mark]:
    """A row of panels for each column set."""
    return [
        Mark(f"on {key}", summary.mechanism, summary.epsilon, summary.answers)
        for key, found in summaries.items()
        for summary in found
    ]


def _section_of_adult(outcomes: Outcomes) -> list[str]:
    summaries = summarise(outcomes, ADULT)
    if not summaries:
        return []
    about = f"{size_of(outcomes, ADULT)} `python -m benchmarks.mixed adult`"
    tables = [at_largest_epsilon(summaries), beside_references(summaries, ADULT_REFERENCES)]
    return [_section(ADULT.title, about, tables)]


def _section_of_study(study: Study, findings: Findings, folder: Path) -> list[str]:
    tables = study.tables(findings)
    if not tables:
        return []
    about = f"{study.about} `python -m benchmarks.mixed {study.name}`"
    if study.plot is not None:
        study.plot(findings, folder / f"mixed-{study.name}.svg")
        about = f"{about}\n\n{_picture(study.name, study.title)}"
    return [_section(study.title, about, tables)]


def _picture(name: str, title: str) -> str:
    return f"![{title}](mixed-{name}.svg)"


def _section(title: str, about: str, tables: Sequence[Figures]) -> str:
    """Print the tables, and return them in Markdown."""
    for table in tables:
        table.show(title)
    return "\n\n".join([f"## {title}", about, *(table.in_markdown() for table in tables)]) + "\n"
