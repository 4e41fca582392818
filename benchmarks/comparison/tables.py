"""Tables of results, for the terminal and for the documentation."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.comparison.outcomes import Outcomes
from benchmarks.comparison.problem import Comparison
from benchmarks.comparison.summary import ErrorEstimates, Summary
from benchmarks.report import markdown_table, print_table


@dataclass(frozen=True)
class Figures:
    """A table with its title."""

    title: str
    header: list[str]
    rows: list[list[object]]

    def show(self, heading: str) -> None:
        """Print it."""
        print_table(f"{heading}: {self.title}", self.header, self.rows)

    def in_markdown(self) -> str:
        """The title as a sentence, and the table."""
        title = self.title[0].upper() + self.title[1:]
        return f"{title}:\n\n{markdown_table(self.header, self.rows)}"


@dataclass(frozen=True)
class Reference:
    """Errors of other public code on the same queries, measured once."""

    name: str
    largest_error: float
    mean_error: float
    seconds: float | str


def size_of(outcomes: Outcomes, comparison: Comparison) -> str:
    """The size of the problem, and a warning if the results come from several versions of the code."""
    found = [o for task, o in outcomes.items() if task.comparison == comparison.name]
    size = f"{found[0].rows:,} private rows, {found[0].queries:,} queries."
    states = len({outcome.code for outcome in found})
    warning = f" **Measured with {states} different states of the code.**" if states > 1 else ""
    return size + warning


def at_largest_epsilon(summaries: Sequence[Summary]) -> Figures:
    """All results at the largest epsilon."""
    largest = max(summary.epsilon for summary in summaries)
    return Figures(
        f"epsilon {largest:g}",
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
            if summary.epsilon == largest
        ],
    )


def _of_rows(summary: Summary) -> tuple[object, object]:
    released = summary.released_rows
    return ("–", "–") if released is None else (released.max, released.mean)


def by_epsilon(summaries: Sequence[Summary]) -> list[Figures]:
    """Max and mean error of the answers, a column for each epsilon; None if there is only one."""
    epsilons = sorted({summary.epsilon for summary in summaries})
    if len(epsilons) < 2:
        return []
    found = {(s.mechanism, s.epsilon): s.answers for s in summaries}
    table = Figures(
        "max and mean error of the answers at each epsilon",
        ["", *(f"{epsilon:g}" for epsilon in epsilons)],
        [
            [mechanism, *(_pair(found.get((mechanism, epsilon))) for epsilon in epsilons)]
            for mechanism in dict.fromkeys(s.mechanism for s in summaries)
        ],
    )
    return [table]


def _pair(errors: ErrorEstimates | None) -> str:
    return "–" if errors is None else f"{errors.max.mean:.2g} / {errors.mean.mean:.2g}"


def beside_references(ours: Sequence[Summary], references: Sequence[Reference]) -> Figures:
    """Our answers and our rows separately: most other code releases rows, which have larger errors."""
    elsewhere: list[list[object]] = [
        [r.name, r.largest_error, r.mean_error, r.seconds] for r in references
    ]
    return Figures(
        f"beside other public code, epsilon {ours[0].epsilon:g}; its figures were measured once, "
        "elsewhere, so seconds compare only roughly",
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
            *elsewhere,
        ],
    )
