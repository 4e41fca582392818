"""`make bench-speed`: processor seconds of small jobs, alone and at once, and of a worker's first questions.

All jobs resume the same journal, so that they fit the same noisy counts and do the same work.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import httpx
import numpy as np

from benchmarks.report import print_table
from benchmarks.service.answers import WORKLOAD, released
from benchmarks.service.measure import MEBIBYTE, processor_seconds
from benchmarks.service.stack import Stack, running_stack
from scrim.spec.population import Protection
from scrim.spec.release import AskedRelease, ReleaseSpec
from scrim.spec.schema import Schema
from synth.journal import MemoryJournal, Operation
from synth.planning.choice import resolve
from synth.run import run
from synth.table import Table
from synth.threads import wait_passively

ROWS = 8000
DELTA = 1e-9
REPEATS = 5
QUESTIONS = 3
PROTECTION = Protection()
SIZES = {"a": 2, "b": 5, "c": 8, "d": 10}


def small_table() -> Table:
    """4 columns and 8,000 rows, in which each column depends on the one before."""
    columns = [
        {
            "name": name,
            "type": "categorical",
            "values": [str(code) for code in range(size)],
            "other": "0",
            "nullable": False,
        }
        for name, size in SIZES.items()
    ]
    rng = np.random.default_rng(0)
    codes, last = {}, np.zeros(ROWS, dtype=np.int64)
    for name, size in SIZES.items():
        last = (last + rng.binomial(size - 1, 0.3, size=ROWS)) % size
        codes[name] = last.astype(np.uint8)
    return Table(Schema.model_validate({"columns": columns}), [codes])


def small_release(table: Table) -> ReleaseSpec:
    """All marginals of up to three columns at epsilon 2, by the mechanism that `auto` chooses."""
    asked = AskedRelease.model_validate(
        {
            "workload": [{"type": "marginals", "k": k} for k in (1, 2, 3)],
            "mechanism": {"name": "auto"},
            "budget": {"epsilon": 2.0},
            "outputs": {"rows": ROWS},
            "expected_rows": ROWS,
        }
    )
    return resolve(asked, table.schema, PROTECTION, DELTA).release


def used() -> float:
    """Processor seconds of this process so far."""
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return spent.ru_utime + spent.ru_stime


def run_job(path: Path) -> None:
    """Resume a journal; print the processor seconds of the imports, of a first job and of a second."""
    imported = used()
    table = small_table()
    times = []
    for _ in range(2):
        start = used()
        journal = MemoryJournal(
            [
                Operation(**{**each, "values": np.array(each["values"])})
                for each in json.loads(path.read_text())
            ]
        )
        run(small_release(table), table, journal, protection=PROTECTION, delta=DELTA)
        times.append(used() - start)
    print(json.dumps([imported, *times]))


def record_journal(path: Path) -> None:
    """Run the job once, for the journal that all others resume."""
    table, journal = small_table(), MemoryJournal()
    run(small_release(table), table, journal, protection=PROTECTION, delta=DELTA)
    operations = [
        {**asdict(operation), "values": operation.values.tolist()}
        for operation in journal.operations()
    ]
    path.write_text(json.dumps(operations))


def at_once(jobs: int, path: Path) -> list[list[float]]:
    """Run jobs in processes of their own at the same time; returns the times of each."""
    environment = dict(os.environ)
    wait_passively(environment)
    command = [sys.executable, "-m", "benchmarks.speed", "job", str(path)]
    started = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) for _ in range(jobs)
    ]
    found = [process.communicate()[0] for process in started]
    return [[float(part) for part in json.loads(line)] for line in found]


def small_jobs() -> None:
    """One small job alone, and two at once, in turns: other load affects both alike."""
    alone: list[list[float]] = []
    both: list[list[float]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.json"
        record_journal(path)
        for _ in range(REPEATS):
            alone += at_once(1, path)
            both += at_once(2, path)
    print_table(
        f"`auto` on {len(SIZES)} columns and {ROWS:,} rows, epsilon 2: processor seconds, median",
        ["", "start and imports", "first job", "later job", "jobs"],
        [["alone", *_medians(alone)], ["two at once, each", *_medians(both)]],
    )


def _medians(times: Sequence[Sequence[float]]) -> list[object]:
    return [*(statistics.median(part) for part in zip(*times, strict=True)), len(times)]


def first_questions(stack: Stack) -> None:
    """The first questions after the start of a worker."""
    with stack.worker("all"):
        path = f"{stack.url}/v1/releases/{released(stack)}/answers"
    rows: list[list[object]] = []
    with stack.worker("fast") as worker:
        for number in range(1, QUESTIONS + 1):
            before, start = processor_seconds(worker), time.perf_counter()
            answer = httpx.post(
                path, json={"workload": WORKLOAD}, headers=stack.headers, timeout=600
            )
            answer.raise_for_status()
            took = time.perf_counter() - start
            rows.append([f"question {number}", processor_seconds(worker) - before, took])
    print_table(
        "Questions right after the start of a worker",
        ["", "processor seconds", "seconds"],
        rows,
    )


def main() -> None:
    """Run all, or the part that a child process was started for."""
    match sys.argv[1:]:
        case ["job", path]:
            run_job(Path(path))
        case _:
            small_jobs()
            with running_stack(max_upload_bytes=MEBIBYTE) as stack:
                first_questions(stack)


if __name__ == "__main__":
    main()
