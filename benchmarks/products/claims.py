"""Findings of the papers and targets on ADULT, and whether the measurements meet them."""

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
    """A finding of the papers: one mechanism has smaller errors than another."""

    sentence: str
    ours: str
    other: str
    sets: Sequence[str] | None = None
    """The sets; by default all that have both mechanisms."""


FINDINGS = (
    Finding("rap_softmax has smaller errors than rap.", "rap_softmax", "rap"),
    Finding("gem has smaller errors than rap_softmax.", "gem", "rap_softmax"),
    Finding(
        "With similar public rows, gem_pub has smaller errors than gem.", "gem_pub", "gem", CLOSE
    ),
    Finding(
        "With similar public rows, pmw_pub has smaller errors than gem.", "pmw_pub", "gem", CLOSE
    ),
    Finding(
        "If all public rows are of one sex, gem_pub has smaller errors than pmw_pub.",
        "gem_pub",
        "pmw_pub",
        ("adult-public-one-sex",),
    ),
    Finding(
        "With 7 of 13 columns public, gem_pub has smaller errors than gem.",
        "gem_pub",
        "gem",
        ("adult-public-columns",),
    ),
)


@dataclass(frozen=True)
class Goal:
    """Upper limits of the errors on ADULT, for the best of some mechanisms."""

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
    """Check all claims against the results so far."""
    summaries = {comparison.name: summarise(outcomes, comparison) for comparison in comparisons}
    return [
        within(
            "On ADULT, errors are at most the targets.",
            [errors for goal in GOALS for errors in _nearest(goal, summaries.get("adult", []))],
            title="errors of the mechanism closest to the target",
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
                title=f"errors of {finding.other} divided by those of {finding.ours}",
            )
            for finding in FINDINGS
        ),
    ]


def _nearest(goal: Goal, summaries: Sequence[Summary]) -> list[tuple[str, float, float]]:
    """Largest and mean error of the mechanism that is closest to both limits, each with its limit."""
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
