"""Run many releases, one after the other; each result is saved as soon as it is done."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.comparison.code import fingerprint
from benchmarks.comparison.job import CATALOGUE, count_truth, run_job
from benchmarks.comparison.outcomes import Found, Task, append, read_fields
from benchmarks.comparison.problem import Comparison, Problem
from scrim.spec.errors import SpecError


@dataclass(frozen=True)
class Grid:
    """The part of each comparison to run."""

    epsilons: Sequence[float]
    runs: int
    mechanisms: Sequence[str] | None = None
    """Only these mechanisms; by default all of the comparison."""

    def tasks(self, comparison: Comparison) -> Iterator[Task]:
        """The tasks, one run of each first, so that an interrupted grid has results for all."""
        for run in range(self.runs):
            for epsilon in self.epsilons:
                for mechanism in comparison.mechanisms:
                    if self.mechanisms is None or mechanism in self.mechanisms:
                        yield Task(comparison.name, mechanism, epsilon, run)


Judge = Callable[..., Found]
"""Runs a release of some problem, and compares it with the truth (see `run_job`)."""


def judge_rows(problem: Problem) -> Judge:
    """Build a judge for releases of one table; the truth is counted once."""
    return partial(run_job, problem, count_truth(problem))


def run_grid(
    comparisons: Sequence[Comparison],
    grid: Grid,
    *,
    results: Path,
    again: bool = False,
    same_code: bool = False,
    judge: Callable[[Any], Judge] = judge_rows,
    competitors: Collection[str] = CATALOGUE,
) -> None:
    """Run every task that the file has no outcome of; with `again`, all of them.

    With `same_code`, outcomes of other states of the code do not count.
    """
    # Taken at the start, because that is the code in memory, whatever is edited meanwhile.
    code = fingerprint()
    for comparison in comparisons:
        done = {} if again else read_fields(results, code=code if same_code else None)
        tasks = [task for task in grid.tasks(comparison) if task not in done]
        known = keep_known((task.mechanism for task in tasks), competitors)
        left = [task for task in tasks if task.mechanism in known]
        if left:
            _run_tasks(comparison, left, results, run=judge(comparison.load()), code=code)


def keep_known(mechanisms: Iterable[str], competitors: Collection[str] = CATALOGUE) -> list[str]:
    """Keep the mechanisms in the catalogue; print the names of the others."""
    distinct = dict.fromkeys(mechanisms)
    for mechanism in distinct:
        if mechanism not in competitors:
            print(f"{mechanism} is left out: the catalogue has no such mechanism", flush=True)
    return [mechanism for mechanism in distinct if mechanism in competitors]


def _run_tasks(
    comparison: Comparison, tasks: list[Task], results: Path, *, run: Judge, code: str
) -> None:
    for number, task in enumerate(tasks, start=1):
        described = (
            f"{task.comparison} {number}/{len(tasks)}: {task.mechanism}, epsilon {task.epsilon:g}, "
            f"run {task.run}"
        )
        try:
            outcome = run(
                mechanism=task.mechanism,
                parameters=comparison.parameters.get(task.mechanism, {}),
                epsilon=task.epsilon,
                seed=task.run,
                code=code,
            )
        except SpecError as refused:
            print(f"{described}: left out: {refused}", flush=True)
            continue
        append(results, task, outcome)
        print(f"{described}: {outcome}", flush=True)
