"""Runs of the same release, summed up, and the figures that are shown of them."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.comparison.outcomes import Errors
from benchmarks.comparison.summary import Estimate
from benchmarks.judge.outcomes import Judgement, Judgements
from benchmarks.judge.sets import JudgedSet

AUTO = "auto"

Measure = Callable[[Judgement], float | None]


def _rows(judgement: Judgement) -> Errors:
    assert judgement.released_rows is not None
    return judgement.released_rows


ERRORS: Mapping[str, Measure] = {
    "rows: mean": lambda found: _rows(found).mean,
    "rows: max": lambda found: _rows(found).max,
    "answers: mean": lambda found: found.answers.mean,
    "answers: max": lambda found: found.answers.max,
}
"""The errors that mechanisms are compared by."""
MEASURES: Mapping[str, Measure] = {
    **ERRORS,
    "rows: RMS": lambda found: _rows(found).rms,
    "answers: RMS": lambda found: found.answers.rms,
    "pairs: mean TV": lambda found: found.pairs.mean,
    "pairs: max TV": lambda found: found.pairs.max,
    "rare": lambda found: found.rare_error,
    "AUC": lambda found: found.auc_ratio,
    "processor s": lambda found: found.processor_seconds,
    "peak MiB": lambda found: found.peak_mebibytes,
}
"""Everything that is shown of a release."""


@dataclass(frozen=True)
class Runs:
    """All runs of one mechanism on one table at one epsilon."""

    table: str
    mechanism: str
    epsilon: float
    found: Sequence[Judgement]

    def estimate(self, measure: Measure) -> Estimate | None:
        """The mean of a measure; None where it was not taken."""
        values = [value for each in self.found if (value := measure(each)) is not None]
        return Estimate.of(values) if values else None

    def value(self, measure: Measure) -> float:
        """The mean of a measure that every run has."""
        estimate = self.estimate(measure)
        assert estimate is not None
        return estimate.mean

    @property
    def chosen(self) -> str:
        """The mechanism that ran, or all of them where runs differ."""
        return ", ".join(dict.fromkeys(each.chosen for each in self.found))

    @property
    def name(self) -> str:
        """The mechanism, and what `auto` chose."""
        return f"auto ({self.chosen})" if self.mechanism == AUTO else self.mechanism

    @property
    def place(self) -> str:
        """The table and the epsilon."""
        return f"{self.table}, epsilon {self.epsilon:g}"


def collect_runs(judgements: Judgements, sets: Sequence[JudgedSet]) -> list[Runs]:
    """One for each table, epsilon and mechanism that was measured, in the order of the sets."""
    found: dict[tuple[str, float, str], list[Judgement]] = defaultdict(list)
    for task, judgement in judgements.items():
        found[task.comparison, task.epsilon, task.mechanism].append(judgement)
    epsilons = sorted({task.epsilon for task in judgements})
    return [
        Runs(each.name, mechanism, epsilon, found[each.name, epsilon, mechanism])
        for each in sets
        for epsilon in epsilons
        for mechanism in each.mechanisms
        if (each.name, epsilon, mechanism) in found
    ]
