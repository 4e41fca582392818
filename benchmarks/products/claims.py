"""What the papers found, and what was hoped for on ADULT; whether the figures show it."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.comparison.claims import Claim, closer, times_as_large, within
from benchmarks.comparison.outcomes import Outcomes
from benchmarks.comparison.problem import Comparison
from benchmarks.comparison.summary import Summary, summarise

CLOSE = ("adult-public", "acs-pa", "acs-ny")
"""Sets whose public rows are like the private ones."""
FAMILY = ("gem", "rap", "rap_softmax", "relaxed_projection", "generative_network")


@dataclass(frozen=True)
class Finding:
    """Of the papers: that one mechanism errs less than another."""

    sentence: str
    ours: str
    other: str
    sets: Sequence[str] | None = None
    """All that have both, where not given."""


FINDINGS = (
    Finding("rap_softmax errs less than rap.", "rap_softmax", "rap"),
    Finding("gem errs less than rap_softmax.", "gem", "rap_softmax"),
    Finding(
        "Beside public rows like its own, gem_pub errs less than gem.", "gem_pub", "gem", CLOSE
    ),
    Finding(
        "Beside public rows like its own, pmw_pub errs less than gem.", "pmw_pub", "gem", CLOSE
    ),
    Finding(
        "Where all public rows are of one sex, gem_pub errs less than pmw_pub.",
        "gem_pub",
        "pmw_pub",
        ("adult-public-one-sex",),
    ),
    Finding(
        "With 7 of 13 columns public, gem_pub errs less than gem.",
        "gem_pub",
        "gem",
        ("adult-public-columns",),
    ),
)


@dataclass(frozen=True)
class Goal:
    """The errors on ADULT that one of some mechanisms should have, at the most."""

    epsilon: float
    mechanisms: Sequence[str]
    max: float
    mean: float


GOALS = (
    Goal(1.0, ("relaxed_projection",), 0.0085, 9e-5),
    Goal(1.0, ("gem",), 0.013, 1.0e-4),
    Goal(1.0, FAMILY, 0.0075, 8e-5),
    Goal(0.1, FAMILY, 0.035, 2.5e-4),
)


def check_claims(comparisons: Sequence[Comparison], outcomes: Outcomes) -> list[Claim]:
    """All of them, with what was measured so far."""
    summaries = {comparison.name: summarise(outcomes, comparison) for comparison in comparisons}
    return [
        within(
            "On ADULT, errors are at most what was hoped for.",
            [errors for goal in GOALS for errors in _nearest(goal, summaries.get("adult", []))],
            title="errors of the mechanism that comes nearest",
        ),
        *(
            closer(
                finding.sentence,
                [
                    ratio
                    for name, found in summaries.items()
                    if finding.sets is None or name in finding.sets
                    for ratio in times_as_large(
                        found, other=finding.other, ours=finding.ours, where=name
                    )
                ],
                more_than=1,
                title=f"how many times as large the errors of {finding.other} are as those of {finding.ours}",
            )
            for finding in FINDINGS
        ),
    ]


def _nearest(goal: Goal, summaries: Sequence[Summary]) -> list[tuple[str, float, float]]:
    """Largest and mean error of the mechanism that is nearest to both, each with its limit."""
    candidates = [
        summary
        for summary in summaries
        if summary.epsilon == goal.epsilon and summary.mechanism in goal.mechanisms
    ]
    if not candidates:
        return []
    nearest = min(
        (summary.answers for summary in candidates),
        key=lambda errors: max(errors.max.mean / goal.max, errors.mean.mean / goal.mean),
    )
    name = next(summary.mechanism for summary in candidates if summary.answers is nearest)
    among = "" if len(goal.mechanisms) == 1 else "best of the family: "
    where = f"epsilon {goal.epsilon:g}, {among}{name}"
    return [
        (f"{where}, max", nearest.max.mean, goal.max),
        (f"{where}, mean", nearest.mean.mean, goal.mean),
    ]
