"""Targets of h_gem, and whether the measurements meet them."""

from collections.abc import Iterable, Sequence

from benchmarks.comparison.claims import (
    Claim,
    Find,
    Ratio,
    answers_of,
    closer,
    fast_enough,
    times_as_large,
)
from benchmarks.comparison.problem import Comparison
from benchmarks.comparison.summary import summarise
from benchmarks.households.outcomes import LEVELS, TwoLevelOutcomes, at_level
from benchmarks.households.sets import TIMED_ROUNDS
from scrim.spec.workload.hierarchical import Level

OURS = "h_gem"
MINUTES = 5
TIMES = 2


def check_claims(outcomes: TwoLevelOutcomes, comparisons: Sequence[Comparison]) -> list[Claim]:
    """Check all targets against the results so far."""
    small = [comparison for comparison in comparisons if comparison.name == "small-person"]
    timed = [comparison for comparison in comparisons if comparison.name.endswith("-rounds")]
    return [
        closer(
            f"For people on the small set, {OURS} has smaller errors than h_mwem at every epsilon.",
            _ratios(outcomes, small, "h_mwem", LEVELS, answers_of),
            more_than=1,
            title="errors of h_mwem's answers divided by those of h_gem",
        ),
        closer(
            f"In groups, the errors of {OURS} are less than half those of random_join.",
            _ratios(outcomes, comparisons, "random_join", ["group"], lambda s: s.released_rows),
            more_than=TIMES,
            title="errors of random_join's rows divided by those of h_gem",
        ),
        fast_enough(
            f"{OURS} releases the full set in {TIMED_ROUNDS} rounds in less than {MINUTES} minutes.",
            # Time is the same at both levels.
            {
                f"{comparison.name}, epsilon {summary.epsilon:g}": summary
                for comparison in timed
                for summary in summarise(at_level(outcomes, "group"), comparison)
                if summary.mechanism == OURS
            },
            seconds=60 * MINUTES,
            title="time of a release by h_gem",
        ),
    ]


def _ratios(
    outcomes: TwoLevelOutcomes,
    comparisons: Sequence[Comparison],
    other: str,
    levels: Iterable[Level],
    errors_of: Find,
) -> list[Ratio]:
    return [
        ratio
        for comparison in comparisons
        for level in levels
        for ratio in times_as_large(
            summarise(at_level(outcomes, level), comparison),
            other=other,
            ours=OURS,
            where=comparison.name,
            of=f"{level}s: ",
            errors_of=errors_of,
        )
    ]
