"""What releases should reach, and whether the figures show it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from benchmarks.comparison.tables import Figures
from benchmarks.judge.summary import AUTO, ERRORS, Measure, Runs

MEAN_LIMIT, MAX_LIMIT = 1.05, 1.5
"""How many times as large as the best mechanism's the errors of `auto` may be."""
AUC_LIMIT, AUC_ROWS, AUC_EPSILON = 0.95, 30_000, 1.0


@dataclass(frozen=True)
class Verdict:
    """A target, how many cases were measured, and those that miss it."""

    target: str
    cases: int
    missed: Sequence[str]

    def __str__(self) -> str:
        target = f"Target: {self.target}."
        if not self.cases:
            return f"{target} Not measured."
        if not self.missed:
            return f"{target} **Met** in {self.cases} of {self.cases} cases."
        missed = "; ".join(self.missed)
        return f"{target} **Missed** in {len(self.missed)} of {self.cases} cases: {missed}."


@dataclass(frozen=True)
class Contest:
    """`auto` and the mechanisms that were measured beside it."""

    auto: Runs
    others: Sequence[Runs]

    def best(self, measure: Measure) -> Runs:
        """The other mechanism with the smallest error."""
        return min(self.others, key=lambda runs: runs.value(measure))

    def ratio(self, measure: Measure) -> float:
        """How many times as large the error of `auto` is as the smallest of the others."""
        return self.auto.value(measure) / self.best(measure).value(measure)


def contests(all_runs: Sequence[Runs]) -> list[Contest]:
    """Wherever `auto` and another mechanism were measured."""
    by_place: dict[str, list[Runs]] = defaultdict(list)
    for runs in all_runs:
        by_place[runs.place].append(runs)
    return [
        Contest(auto, others)
        for found in by_place.values()
        for auto in found
        if auto.mechanism == AUTO and (others := [each for each in found if each is not auto])
    ]


def limit_of(error: str) -> float:
    """How large a ratio of this error may be."""
    return MEAN_LIMIT if error.endswith("mean") else MAX_LIMIT


def against_the_best(all_runs: Sequence[Runs]) -> Figures:
    """A row for each table and epsilon, a ratio for each kind of error."""
    return Figures(
        "errors of `auto`, divided by the smallest of the other mechanisms",
        ["", "auto chose", "best by mean of rows", "among", *ERRORS],
        [
            [
                contest.auto.place,
                contest.auto.chosen,
                contest.best(ERRORS["rows: mean"]).mechanism,
                len(contest.others),
                *(contest.ratio(measure) for measure in ERRORS.values()),
            ]
            for contest in contests(all_runs)
        ],
    )


def near_the_best(all_runs: Sequence[Runs]) -> list[Verdict]:
    """Whether `auto` errs little more than the best mechanism, for each kind of error."""
    found = contests(all_runs)
    return [
        Verdict(
            f"the error of `auto` ({error}) is at most {limit_of(error):g} times that of the best mechanism",
            len(found),
            [
                f"{contest.auto.place}: {ratio:.3g} times"
                for contest in found
                if (ratio := contest.ratio(measure)) > limit_of(error)
            ],
        )
        for error, measure in ERRORS.items()
    ]


def useful_for_learning(all_runs: Sequence[Runs]) -> Verdict:
    """Whether rows of `auto` teach a classifier nearly as much as true ones."""
    judged = [
        (runs, runs.value(lambda found: found.auc_ratio))
        for runs in all_runs
        if runs.mechanism == AUTO
        and runs.epsilon == AUC_EPSILON
        and runs.found[0].table_rows >= AUC_ROWS
    ]
    return Verdict(
        f"on tables of {AUC_ROWS:,} rows or more at epsilon {AUC_EPSILON:g}, the AUC of a classifier trained "
        f"on the rows of `auto` is at least {AUC_LIMIT:g} of that trained on true rows",
        len(judged),
        [f"{runs.table}: {ratio:.3f}" for runs, ratio in judged if ratio < AUC_LIMIT],
    )


def falls_with_epsilon(all_runs: Sequence[Runs], error: str) -> Verdict:
    """Whether a larger epsilon has a smaller error, for every mechanism on every table."""
    lines: dict[tuple[str, str], list[Runs]] = defaultdict(list)
    for runs in all_runs:
        lines[runs.table, runs.mechanism].append(runs)
    measure = ERRORS[error]
    steps = [
        (smaller, larger)
        for line in lines.values()
        for smaller, larger in pairwise(sorted(line, key=lambda runs: runs.epsilon))
    ]
    return Verdict(
        f"the error ({error}) falls as epsilon grows, for every mechanism and table",
        len(steps),
        [
            f"{larger.table}, {larger.mechanism}: {smaller.value(measure):.3g} at epsilon "
            f"{smaller.epsilon:g}, {larger.value(measure):.3g} at {larger.epsilon:g}"
            for smaller, larger in steps
            if larger.value(measure) >= smaller.value(measure)
        ],
    )


def check_targets(all_runs: Sequence[Runs]) -> list[Verdict]:
    """All of them."""
    return [
        *near_the_best(all_runs),
        useful_for_learning(all_runs),
        *(falls_with_epsilon(all_runs, error) for error in ("rows: mean", "answers: mean")),
    ]
