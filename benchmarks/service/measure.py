"""Run calls many times concurrently, and watch memory."""

import asyncio
import statistics
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psutil

MEBIBYTE = 2**20
LOOK_SECONDS = 0.05


async def repeat(action: Callable[[], Awaitable[None]], *, times: int, at_once: int) -> None:
    """Run a call `times` times, a fixed number of them at once."""
    left = iter(range(times))

    async def one_after_the_other() -> None:
        for _ in left:
            await action()

    await asyncio.gather(*(one_after_the_other() for _ in range(at_once)))


async def latencies(
    action: Callable[[], Awaitable[None]], *, times: int, at_once: int
) -> list[float]:
    """Milliseconds of each of many calls."""
    found: list[float] = []

    async def timed() -> None:
        start = time.perf_counter()
        await action()
        found.append(1000 * (time.perf_counter() - start))

    await repeat(timed, times=times, at_once=at_once)
    return found


def median_and_p99(times: list[float]) -> tuple[float, float]:
    """The median and the 99th percentile of latencies."""
    return statistics.median(times), statistics.quantiles(times, n=100)[98]


def processor_seconds(process: psutil.Process) -> float:
    """Processor time of a process and its descendants so far."""
    times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
    return float(sum(each.user + each.system for each in times))


@dataclass
class Memory:
    """Resident memory of a process and its descendants, in MiB."""

    before: float
    peak: float


@contextmanager
def watched_memory(process: psutil.Process) -> Iterator[Memory]:
    """Sample the memory of a tree of processes.

    Shared memory is counted once on Linux, and for each process on other systems.
    """
    now = _resident(process)
    seen, stopping = Memory(now, now), threading.Event()

    def look() -> None:
        while not stopping.wait(LOOK_SECONDS):
            seen.peak = max(seen.peak, _resident(process))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        stopping.set()
        thread.join()


def _resident(process: psutil.Process) -> float:
    total = 0
    for each in (process, *process.children(recursive=True)):
        # A process that has just ended uses no memory.
        with suppress(psutil.NoSuchProcess):
            used = each.memory_full_info()
            total += getattr(used, "pss", used.rss)
    return total / MEBIBYTE
