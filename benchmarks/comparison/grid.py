"""Many releases, one after the other, each written down as soon as it is done."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.comparison.job import CATALOGUE, count_truth, fingerprint, run_job
from benchmarks.comparison.outcomes import Outcome, Task, append, read
from benchmarks.comparison.problem import Comparison
from synth.spec.errors import SpecError


@dataclass(frozen=True)
class Grid:
    """How much of each comparison is run."""

    epsilons: Sequence[float]
    runs: int
    mechanisms: Sequence[str] | None = None
    """Only these; all that compete where not given."""

    def tasks(self, comparison: Comparison) -> Iterator[Task]:
        """One run of everything first, so that a grid that is broken off has something of all."""
        for run in range(self.runs):
            for epsilon in self.epsilons:
                for mechanism in comparison.mechanisms:
                    if self.mechanisms is None or mechanism in self.mechanisms:
                        yield Task(comparison.name, mechanism, epsilon, run)


def run_grid(
    comparisons: Sequence[Comparison], grid: Grid, *, results: Path, again: bool = False
) -> None:
    """Run every task that the file has no outcome of; with `again`, all of them."""
    # Taken at the start, because that is the code in memory, whatever is edited meanwhile.
    code = fingerprint()
    for comparison in comparisons:
        done = {} if again else read(results)
        tasks = [task for task in grid.tasks(comparison) if task not in done]
        known = keep_known(task.mechanism for task in tasks)
        _run_tasks(comparison, [t for t in tasks if t.mechanism in known], results, code=code)


def keep_known(mechanisms: Iterable[str]) -> list[str]:
    """The mechanisms that the catalogue has; the others are named."""
    distinct = dict.fromkeys(mechanisms)
    for mechanism in distinct:
        if mechanism not in CATALOGUE:
            print(f"{mechanism} is left out: the catalogue has no such mechanism", flush=True)
    return [mechanism for mechanism in distinct if mechanism in CATALOGUE]


def _run_tasks(comparison: Comparison, tasks: list[Task], results: Path, *, code: str) -> None:
    if not tasks:
        return
    problem = comparison.load()
    truth = count_truth(problem)
    for number, task in enumerate(tasks, start=1):
        described = (
            f"{task.comparison} {number}/{len(tasks)}: {task.mechanism}, epsilon {task.epsilon:g}, "
            f"run {task.run}"
        )
        try:
            outcome = run_job(
                problem,
                truth,
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
        print(f"{described}: {_summary(outcome)}", flush=True)


def _summary(outcome: Outcome) -> str:
    return (
        f"max {outcome.answers.max:.3g}, mean {outcome.answers.mean:.3g}, {outcome.seconds:.3g} s"
    )
