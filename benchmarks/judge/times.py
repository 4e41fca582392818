"""Processor seconds of a small job by `auto`, alone and beside another in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.comparison.code import commit, fingerprint
from benchmarks.comparison.job import run_release
from benchmarks.comparison.problem import Problem
from benchmarks.comparison.tables import Figures
from benchmarks.data import DataSet
from benchmarks.products.sets import all_pairs, named
from scrim.importers import from_mbi_domain
from synth.table import Table

ROWS, SIZES, EPSILON = 8_000, {"a": 4, "b": 5, "c": 8, "d": 10}, 1.0
JOBS_AT_ONCE = 2
READY = "ready"


@dataclass(frozen=True)
class SmallJob:
    """How long one job took."""

    case: str
    """Whether the process had the machine for itself, and which of its jobs it was."""
    mechanism: str
    seconds: float
    processor_seconds: float
    code: str
    commit: str


def generated_problem() -> Problem:
    """A table of four related columns, of which all pairs are asked."""
    rng = np.random.default_rng(0)
    kind = rng.integers(4, size=ROWS)
    schema = from_mbi_domain(SIZES)
    chunk = {
        name: np.where(rng.random(ROWS) < 0.5, kind, rng.integers(size, size=ROWS)).astype(np.uint8)
        for name, size in SIZES.items()
    }
    data = DataSet(schema, Table(schema, [chunk]), ROWS)
    return Problem(data, named(all_pairs(data)))


def run_small_jobs() -> None:
    """Import everything, wait for a line, run two jobs one after the other, and print what they took.

    The first also compiles what is not cached, and starts threads.
    """
    problem = generated_problem()
    print(READY, flush=True)
    sys.stdin.readline()
    for seed in range(2):
        timed = run_release(problem, "auto", {}, epsilon=EPSILON, seed=seed)
        print(json.dumps([timed.mechanism, timed.seconds, timed.processor_seconds]), flush=True)


def measure_times(path: Path) -> str:
    """Run one process alone, then two at once; add a line for each job, and return the code's state."""
    state = (fingerprint(), commit())
    alone = [SmallJob(f"alone, {nth} job", *job, *state) for nth, job in _processes(1)]
    together = [
        SmallJob(f"two at once, {nth} job", *job, *state) for nth, job in _processes(JOBS_AT_ONCE)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.writelines(json.dumps(asdict(job)) + "\n" for job in alone + together)
    return state[0]


def _processes(count: int) -> list[tuple[str, tuple[str, float, float]]]:
    """Start processes, let their jobs begin together, and return what each job took."""
    command = [sys.executable, "-m", "benchmarks.judge", "small-jobs"]
    children = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    for child in children:
        assert child.stdout is not None and child.stdout.readline().strip() == READY
    found = []
    for child in children:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
    for child in children:
        printed, _ = child.communicate()
        jobs = [tuple(json.loads(line)) for line in printed.splitlines()]
        found += list(zip(("first", "second"), jobs, strict=True))
    return found


def times_of(path: Path, *, code: str | None) -> Figures | None:
    """What was measured with one state of the code; None where nothing was."""
    lines = path.read_text().splitlines() if path.exists() else []
    jobs = [job for line in lines if (job := SmallJob(**json.loads(line))).code == code]
    return figures_of_times(jobs) if jobs else None


def figures_of_times(jobs: Sequence[SmallJob]) -> Figures:
    """The times of each case, and how many times as long as alone."""
    cases = list(dict.fromkeys(job.case for job in jobs))
    return Figures(
        f"`auto` on {ROWS:,} rows of {len(SIZES)} columns, all pairs, epsilon {EPSILON:g}; after imports",
        ["", "mechanism", "seconds", "processor seconds", "jobs"],
        [
            [
                case,
                found[0].mechanism,
                sum(job.seconds for job in found) / len(found),
                sum(job.processor_seconds for job in found) / len(found),
                len(found),
            ]
            for case in cases
            if (found := [job for job in jobs if job.case == case])
        ],
    )
