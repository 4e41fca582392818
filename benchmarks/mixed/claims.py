"""Targets of private_gsd, and whether the measurements meet them."""

from collections.abc import Mapping

from benchmarks.comparison.claims import Claim, Ratio, closer, fast_enough, times_as_large
from benchmarks.comparison.outcomes import Outcomes
from benchmarks.comparison.problem import Comparison
from benchmarks.comparison.summary import summarise
from benchmarks.mixed.sets import SETS, Questions

OURS = "private_gsd"
AS_GEM = 1.2
"""The largest accepted ratio to the largest error of gem."""
SECONDS = 60


def check_claims(questions: Mapping[str, Questions], outcomes: Outcomes, state: str) -> list[Claim]:
    """Check all targets against the results so far."""
    of_numbers = [
        ratio
        for name in ("prefixes", "halfspaces")
        for ratio in _ratios(questions, name, outcomes, state, "rap_plus_plus")
    ]
    of_triples = _ratios(questions, "marginals-3", outcomes, state, "gem")
    return [
        closer(
            f"{OURS} has smaller errors than rap_plus_plus on every column set at every epsilon.",
            of_numbers,
            more_than=1,
            title=f"errors of rap_plus_plus divided by those of {OURS}",
        ),
        closer(
            f"The largest error of {OURS} on triples is within {AS_GEM:g} times that of gem.",
            [ratio for ratio in of_triples if ratio.error == "max"],
            more_than=1 / AS_GEM,
            title=f"largest error of gem divided by that of {OURS}",
        ),
        fast_enough(
            f"{OURS} releases all trees of two columns in less than {SECONDS} seconds.",
            {
                f"{key}, epsilon {summary.epsilon:g}": summary
                for key, comparison in _comparisons(questions, "trees", state)
                for summary in summarise(outcomes, comparison)
                if summary.mechanism == OURS and summary.epsilon == 1
            },
            seconds=SECONDS,
            title=f"time of a release by {OURS}",
        ),
    ]


def _ratios(
    questions: Mapping[str, Questions], name: str, outcomes: Outcomes, state: str, other: str
) -> list[Ratio]:
    return [
        ratio
        for key, comparison in _comparisons(questions, name, state)
        for ratio in times_as_large(
            summarise(outcomes, comparison), other=other, ours=OURS, where=f"{name}, {key}"
        )
    ]


def _comparisons(
    questions: Mapping[str, Questions], name: str, state: str
) -> list[tuple[str, Comparison]]:
    """The comparisons with the names of their column sets; empty if there are none of this kind."""
    return list(questions[name].comparisons(SETS, state).items()) if name in questions else []
