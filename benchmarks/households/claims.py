"""What the mechanisms were built to reach, and whether the figures show it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.comparison.problem import Comparison
from benchmarks.comparison.summary import ErrorEstimates, Summary, summarise
from benchmarks.comparison.tables import Figures
from benchmarks.households.outcomes import LEVELS, TwoLevelOutcomes, at_level
from synth.spec.workload.hierarchical import Level

OURS = "h_gem"
MINUTES = 5
TIMES = 2
Find = Callable[[Summary], ErrorEstimates | None]


@dataclass(frozen=True)
class Claim:
    """A sentence, the figures that bear on it, and those of them that are against it."""

    sentence: str
    figures: Figures
    measured: int
    against: Sequence[str]

    @property
    def verdict(self) -> str:
        """The sentence, and whether all that was measured agrees."""
        if not self.against:
            return f"**{self.sentence}** All that was measured agrees."
        count = f"{len(self.against)} of {self.measured}"
        return f"**{self.sentence}** Not so in {count} figures: {'; '.join(self.against)}."


def check_claims(outcomes: TwoLevelOutcomes, comparisons: Sequence[Comparison]) -> list[Claim]:
    """Those about which something was measured."""
    small = [comparison for comparison in comparisons if comparison.name == "small-person"]
    full = [comparison for comparison in comparisons if comparison.name.startswith("full-")]
    claims = [
        _closer(
            f"On the small set, with people as the unit, {OURS} errs less than h_mwem at every epsilon.",
            _times_as_large(outcomes, small, "h_mwem", LEVELS, lambda summary: summary.answers),
            least=1,
            title="how many times as large the errors of h_mwem's answers are as those of h_gem",
        ),
        _closer(
            f"In groups, {OURS} errs less than half as much as random_join.",
            _times_as_large(
                outcomes, comparisons, "random_join", ["group"], lambda s: s.released_rows
            ),
            least=TIMES,
            title="how many times as large the errors of random_join's rows are as those of h_gem",
        ),
        _fast_enough(
            f"{OURS} releases the full set in less than {MINUTES} minutes of processor time.",
            outcomes,
            full,
        ),
    ]
    return [claim for claim in claims if claim.figures.rows]


@dataclass(frozen=True)
class Ratio:
    """How many times as large as ours an error of another mechanism is."""

    where: str
    error: str
    times: float


def _times_as_large(
    outcomes: TwoLevelOutcomes,
    comparisons: Sequence[Comparison],
    other: str,
    levels: Iterable[Level],
    errors_of: Find,
) -> list[Ratio]:
    """Of largest and mean errors, wherever both were measured."""
    ratios = []
    for comparison in comparisons:
        found = {
            (level, summary.mechanism, summary.epsilon): errors_of(summary)
            for level in levels
            for summary in summarise(at_level(outcomes, level), comparison)
        }
        for (level, mechanism, epsilon), errors in found.items():
            ours = found.get((level, OURS, epsilon))
            if mechanism == other and errors is not None and ours is not None:
                where = f"{comparison.name}, epsilon {epsilon:g}"
                largest = errors.max.mean / ours.max.mean
                mean = errors.mean.mean / ours.mean.mean
                ratios.append(Ratio(where, f"{level}s: max", largest))
                ratios.append(Ratio(where, f"{level}s: mean", mean))
    return ratios


def _closer(sentence: str, ratios: Sequence[Ratio], *, least: float, title: str) -> Claim:
    """That every ratio is large enough."""
    columns = list(dict.fromkeys(ratio.error for ratio in ratios))
    times = {(ratio.where, ratio.error): ratio.times for ratio in ratios}
    rows: list[list[object]] = [
        [where, *(times[where, error] for error in columns)]
        for where in dict.fromkeys(ratio.where for ratio in ratios)
    ]
    against = [
        f"{ratio.where}, {ratio.error}: {ratio.times:.3g} times"
        for ratio in ratios
        if ratio.times <= least
    ]
    return Claim(sentence, Figures(title, ["", *columns], rows), len(ratios), against)


def _fast_enough(
    sentence: str, outcomes: TwoLevelOutcomes, comparisons: Sequence[Comparison]
) -> Claim:
    """That no release took longer, on however busy a machine. Time is the same at both levels."""
    found = {
        f"{comparison.name}, epsilon {summary.epsilon:g}": summary
        for comparison in comparisons
        for summary in summarise(at_level(outcomes, "group"), comparison)
        if summary.mechanism == OURS
    }
    rows: list[list[object]] = [
        [where, summary.seconds, summary.processor_seconds] for where, summary in found.items()
    ]
    against = [
        f"{where}: {summary.processor_seconds:.0f} s"
        for where, summary in found.items()
        if summary.processor_seconds > 60 * MINUTES
    ]
    header = ["", "seconds", "processor seconds"]
    figures = Figures("time of a release by h_gem", header, rows)
    return Claim(sentence, figures, len(rows), against)
