"""How long reading takes, alone and in company, and how much processor time the service needs."""

import asyncio

from benchmarks.report import print_table
from benchmarks.service.measure import latencies, median_and_p99, processor_seconds, repeat
from benchmarks.service.releases import submit
from benchmarks.service.stack import Stack

READS = 1000
WARM_UP = 200
"""Reads before the first that counts: every client has its connection by then."""
PAGE = 50


def reads(stack: Stack, *, clients: int) -> None:
    """One population, and a page of releases; every client keeps its connection."""
    population = stack.population(1.0)
    rows = []
    for path in (f"/v1/populations/{population}", f"/v1/releases?limit={PAGE}"):
        for at_once in (1, clients):
            times, seconds = asyncio.run(_read(stack, path, at_once))
            median, p99 = median_and_p99(times)
            shown = path.replace(str(population), "{id}")
            rows.append([shown, at_once, median, p99, p99 / median, READS / seconds])
    print_table(
        f"{READS:,} reads over HTTP, milliseconds, and requests per processor second of the service",
        ["", "at once", "median", "p99", "p99 / median", "per processor second"],
        rows,
    )


def fill_a_page(stack: Stack) -> None:
    """Submit as many releases as a page shows; no worker carries them out."""
    dataset = stack.settled_dataset(stack.population(1.0))
    asyncio.run(submit(stack, dataset, PAGE, 1))


async def _read(stack: Stack, path: str, at_once: int) -> tuple[list[float], float]:
    """Milliseconds of each read, and the service's processor seconds for all of them."""
    async with stack.client(at_once) as client:

        async def read() -> None:
            (await client.get(path)).raise_for_status()

        await repeat(read, times=WARM_UP, at_once=at_once)
        before = processor_seconds(stack.process)
        times = await latencies(read, times=READS, at_once=at_once)
        return times, processor_seconds(stack.process) - before
