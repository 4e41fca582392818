"""Many releases, one after the other, each written down as soon as it is done."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.products.job import CATALOGUE, count_truth, fingerprint, run_job
from benchmarks.products.outcomes import Outcome, Task, append, read
from benchmarks.products.sets import Comparison
from synth.spec.errors import SpecError

EPSILONS = (0.1, 0.15, 0.2, 0.25, 0.5, 1.0)
"""Those of the papers."""
RUNS = 5


@dataclass(frozen=True)
class Grid:
    """How much of each comparison is run."""

    epsilons: Sequence[float] = EPSILONS
    runs: int = RUNS
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
        _run_tasks(comparison, _known(tasks), results, code=code)


def _known(tasks: list[Task]) -> list[Task]:
    """The tasks whose mechanism is in the catalogue; the others are named."""
    for mechanism in sorted({task.mechanism for task in tasks} - CATALOGUE.keys()):
        print(f"{mechanism} is left out: the catalogue has no such mechanism", flush=True)
    return [task for task in tasks if task.mechanism in CATALOGUE]


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
