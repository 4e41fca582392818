"""Summaries over runs of the same release."""

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.comparison.outcomes import Errors, Outcome, Outcomes
from benchmarks.comparison.problem import Comparison


@dataclass(frozen=True)
class Estimate:
    """The mean over some runs."""

    mean: float
    standard_error: float | None
    """None for a single run."""

    @classmethod
    def of(cls, values: Sequence[float]) -> "Estimate":
        """The mean of those values."""
        several = len(values) > 1
        spread = statistics.stdev(values) / math.sqrt(len(values)) if several else None
        return cls(statistics.fmean(values), spread)

    def __str__(self) -> str:
        shown = f"{self.mean:.3g}"
        return shown if self.standard_error is None else f"{shown} ± {self.standard_error:.1g}"


@dataclass(frozen=True)
class ErrorEstimates:
    """Largest and mean error over all asked queries, each over some runs."""

    max: Estimate
    mean: Estimate

    @classmethod
    def of(cls, errors: Sequence[Errors]) -> "ErrorEstimates":
        """The means of those errors."""
        return cls(Estimate.of([e.max for e in errors]), Estimate.of([e.mean for e in errors]))


@dataclass(frozen=True)
class Summary:
    """All runs of one mechanism at one epsilon."""

    mechanism: str
    epsilon: float
    runs: int
    answers: ErrorEstimates
    released_rows: ErrorEstimates | None
    seconds: float
    processor_seconds: float


def summarise(outcomes: Outcomes, comparison: Comparison) -> list[Summary]:
    """One summary per mechanism, in the comparison's order, and epsilon, if there are runs."""
    found: dict[tuple[str, float], list[Outcome]] = defaultdict(list)
    for task, outcome in outcomes.items():
        if task.comparison == comparison.name:
            found[task.mechanism, task.epsilon].append(outcome)
    epsilons = sorted({epsilon for _, epsilon in found})
    return [
        _summary(mechanism, epsilon, found[mechanism, epsilon])
        for mechanism in comparison.mechanisms
        for epsilon in epsilons
        if (mechanism, epsilon) in found
    ]


def _summary(mechanism: str, epsilon: float, outcomes: list[Outcome]) -> Summary:
    released = [o.released_rows for o in outcomes if o.released_rows is not None]
    return Summary(
        mechanism=mechanism,
        epsilon=epsilon,
        runs=len(outcomes),
        answers=ErrorEstimates.of([o.answers for o in outcomes]),
        released_rows=ErrorEstimates.of(released) if released else None,
        seconds=statistics.fmean(o.seconds for o in outcomes),
        processor_seconds=statistics.fmean(o.processor_seconds for o in outcomes),
    )
