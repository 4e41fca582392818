"""How long reading takes, alone and in company."""

import asyncio

from benchmarks.report import print_table
from benchmarks.service.measure import latencies, median_and_p99
from benchmarks.service.stack import Stack

READS = 1000


def reads(stack: Stack, *, clients: int) -> None:
    """One population, and a page of releases."""
    population = stack.population(1.0)
    rows = []
    for path in (f"/v1/populations/{population}", "/v1/releases?limit=50"):
        for at_once in (1, clients):
            times = asyncio.run(_read(stack, path, at_once))
            shown = path.replace(str(population), "{id}")
            rows.append([shown, at_once, *median_and_p99(times)])
    print_table(f"{READS:,} reads over HTTP, milliseconds", ["", "at once", "median", "p99"], rows)


async def _read(stack: Stack, path: str, at_once: int) -> list[float]:
    async with stack.client(at_once) as client:

        async def read() -> None:
            (await client.get(path)).raise_for_status()

        return await latencies(read, times=READS, at_once=at_once)
