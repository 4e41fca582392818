"""The number of threads of a fit, and how threads wait for each other.

The number depends on public facts only: the size of the model and the cores of the worker. It does not
depend on the current load, because it changes the last digits of floating-point sums, and a resumed job
must draw the same rows as the interrupted one.
"""

import os
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager

BYTES_PER_THREAD = 2**23
"""Memory of a fit that keeps one thread busy: 8 MiB.

Processor time of one step of `generative_network` with 1,000 components on all pairs, with two threads
that wait passively relative to one thread:

| table | memory of the fit | processor time |
|---|---|---|
| 4 columns, 25 codes | 8 MiB | 1.24 |
| ADULT reduced | 9 MiB | 1.16 |
| ADULT | 14 MiB | 1.16 |
| ACS | 17 MiB | 1.05 |
| LOANS | 231 MiB | 1.02 |
"""

PASSIVE_WAITING = {
    "OMP_WAIT_POLICY": "PASSIVE",
    # The policy alone lets GNU's OpenMP, which torch uses on Linux, spin for a moment.
    "GOMP_SPINCOUNT": "0",
    # The OpenMP of LLVM and Intel, which torch uses on macOS: milliseconds of spinning.
    "KMP_BLOCKTIME": "0",
}
"""Environment variables that let waiting threads sleep instead of spin.

A spinning thread uses a core that another process needs. Two small fits at once on two cores took up to
11 times the processor time of one fit alone.
"""


def wait_passively(environment: MutableMapping[str, str] = os.environ) -> None:
    """Let waiting threads sleep; variables that are already set are kept.

    Call it before torch is imported: OpenMP reads its variables once, when it is loaded. Workers do so
    at their start. A program that imports `synth` does so in its first lines.
    """
    for name, value in PASSIVE_WAITING.items():
        environment.setdefault(name, value)


def choose_threads(memory_bytes: int | None, *, limit: int) -> int:
    """The number of threads for a fit of that size; one if its size is unknown."""
    return max(1, min(limit, (memory_bytes or 0) // BYTES_PER_THREAD))


@contextmanager
def fitting_threads(memory_bytes: int | None, *, limit: int | None) -> Iterator[None]:
    """Let torch use the threads that fit the model while the block runs.

    `limit` is the maximum; None stands for torch's own, which follows the cores and OMP_NUM_THREADS.
    """
    # Not at the top: importing torch first would make `wait_passively` useless.
    import torch

    before = torch.get_num_threads()
    most = before if limit is None else min(limit, before)
    torch.set_num_threads(choose_threads(memory_bytes, limit=most))
    try:
        yield
    finally:
        torch.set_num_threads(before)
