"""What private_gsd was built to reach, and whether the figures show it."""

from collections.abc import Mapping

from benchmarks.comparison.claims import Claim, Ratio, closer, fast_enough, times_as_large
from benchmarks.comparison.outcomes import Outcomes
from benchmarks.comparison.problem import Comparison
from benchmarks.comparison.summary import summarise
from benchmarks.mixed.sets import SETS, Questions

OURS = "private_gsd"
AS_GEM = 1.2
"""How many times the largest error of gem is near enough."""
SECONDS = 60


def check_claims(questions: Mapping[str, Questions], outcomes: Outcomes, state: str) -> list[Claim]:
    """All of them, with what was measured so far."""
    of_numbers = [
        ratio
        for name in ("prefixes", "halfspaces")
        for ratio in _ratios(questions, name, outcomes, state, "rap_plus_plus")
    ]
    of_triples = _ratios(questions, "marginals-3", outcomes, state, "gem")
    return [
        closer(
            f"{OURS} errs less than rap_plus_plus on every column set at every epsilon.",
            of_numbers,
            more_than=1,
            title=f"how many times as large the errors of rap_plus_plus are as those of {OURS}",
        ),
        closer(
            f"The largest error of {OURS} on triples is within {AS_GEM:g} times that of gem.",
            [ratio for ratio in of_triples if ratio.error == "max"],
            more_than=1 / AS_GEM,
            title=f"how many times as large the largest error of gem is as that of {OURS}",
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
    """With the name of the column set; none where nothing of the kind is asked."""
    return list(questions[name].comparisons(SETS, state).items()) if name in questions else []
