"""Targets of a mechanism, and whether the measurements meet them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.comparison.summary import ErrorEstimates, Summary
from benchmarks.comparison.tables import Figures

Find = Callable[[Summary], ErrorEstimates | None]


@dataclass(frozen=True)
class Claim:
    """A target, the measurements that test it, and those that miss it."""

    sentence: str
    figures: Figures
    measured: int
    against: Sequence[str]

    @property
    def verdict(self) -> str:
        """The target, and whether the measurements meet it."""
        if not self.against:
            return f"**{self.sentence}** Met in all cases."
        count = f"{len(self.against)} of {self.measured}"
        return f"**{self.sentence}** Missed in {count} cases: {'; '.join(self.against)}."


@dataclass(frozen=True)
class Ratio:
    """The error of another mechanism divided by ours."""

    where: str
    error: str
    times: float


def answers_of(summary: Summary) -> ErrorEstimates | None:
    """The errors of a model's answers."""
    return summary.answers


def times_as_large(
    summaries: Sequence[Summary],
    *,
    other: str,
    ours: str,
    where: str,
    of: str = "",
    errors_of: Find = answers_of,
) -> list[Ratio]:
    """The ratios of largest and mean errors of one comparison, at every epsilon where both were measured."""
    found = {(each.mechanism, each.epsilon): errors_of(each) for each in summaries}
    ratios = []
    for (mechanism, epsilon), errors in found.items():
        own = found.get((ours, epsilon))
        if mechanism == other and errors is not None and own is not None:
            place = f"{where}, epsilon {epsilon:g}"
            ratios.append(Ratio(place, f"{of}max", errors.max.mean / own.max.mean))
            ratios.append(Ratio(place, f"{of}mean", errors.mean.mean / own.mean.mean))
    return ratios


def closer(sentence: str, ratios: Sequence[Ratio], *, more_than: float, title: str) -> Claim:
    """The target that every ratio is large enough."""
    columns = list(dict.fromkeys(ratio.error for ratio in ratios))
    times = {(ratio.where, ratio.error): ratio.times for ratio in ratios}
    rows: list[list[object]] = [
        [where, *(times.get((where, error)) for error in columns)]
        for where in dict.fromkeys(ratio.where for ratio in ratios)
    ]
    against = [
        f"{ratio.where}, {ratio.error}: {ratio.times:.3g} times"
        for ratio in ratios
        if ratio.times <= more_than
    ]
    return Claim(sentence, Figures(title, ["", *columns], rows), len(ratios), against)


def within(sentence: str, errors: Sequence[tuple[str, float, float]], *, title: str) -> Claim:
    """The target that no error is larger than its limit."""
    rows: list[list[object]] = [[where, error, limit] for where, error, limit in errors]
    against = [
        f"{where}: {error:.3g} instead of {limit:.3g}"
        for where, error, limit in errors
        if error > limit
    ]
    return Claim(sentence, Figures(title, ["", "error", "target"], rows), len(rows), against)


def fast_enough(
    sentence: str, releases: Mapping[str, Summary], *, seconds: float, title: str
) -> Claim:
    """The target that no release takes longer than a limit.

    Elapsed seconds include other load on the machine, and processor seconds include threads that wait
    for each other. An idle machine takes no longer than the smaller of the two.
    """
    least = {
        where: min(summary.seconds, summary.processor_seconds)
        for where, summary in releases.items()
    }
    rows: list[list[object]] = [
        [where, summary.seconds, summary.processor_seconds] for where, summary in releases.items()
    ]
    against = [f"{where}: {taken:.0f} s" for where, taken in least.items() if taken > seconds]
    figures = Figures(title, ["", "seconds", "processor seconds"], rows)
    return Claim(sentence, figures, len(rows), against)


def section_of_claims(claims: Sequence[Claim]) -> list[str]:
    """Print the claims that have measurements, and return them in Markdown."""
    measured = [claim for claim in claims if claim.figures.rows]
    if not measured:
        return []
    parts = ["## Targets"]
    for claim in measured:
        claim.figures.show(claim.sentence)
        parts += [claim.verdict, claim.figures.in_markdown()]
    return ["\n\n".join(parts) + "\n"]
