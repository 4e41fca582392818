"""Latency of reads, alone and concurrent, and the processor time of the service."""

import asyncio
import re
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

from benchmarks.report import print_table
from benchmarks.service.measure import median_and_p99, processor_seconds
from benchmarks.service.releases import submit
from benchmarks.service.stack import Stack

READS = 1000
WARM_UP = 200
"""Reads before the measurement, so that every client has its connection."""
PAGE = 50


def reads(stack: Stack, *, clients: int) -> None:
    """Read one population, and a page of releases; every client keeps its connection."""
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
    """Submit as many releases as a page shows; no worker runs them."""
    dataset = stack.settled_dataset(stack.population(1.0))
    asyncio.run(submit(stack, dataset, PAGE, 1))


async def _read(stack: Stack, path: str, at_once: int) -> tuple[list[float], float]:
    """Milliseconds of each read, and the service's processor seconds for all of them."""
    readers = [await _Reader.connect(stack, path) for _ in range(at_once)]
    try:
        await _share(readers, WARM_UP)
        before = processor_seconds(stack.process)
        times = await _share(readers, READS)
        return times, processor_seconds(stack.process) - before
    finally:
        for reader in readers:
            reader.close()


async def _share(readers: Sequence["_Reader"], times: int) -> list[float]:
    """Milliseconds of each read; every read is made by the next free reader."""
    left, found = iter(range(times)), []

    async def one_after_the_other(reader: "_Reader") -> None:
        for _ in left:
            start = time.perf_counter()
            await reader.read()
            found.append(1000 * (time.perf_counter() - start))

    await asyncio.gather(*(one_after_the_other(reader) for reader in readers))
    return found


class _Reader:
    """A connection that repeats the same request.

    An HTTP client in Python uses more processor time than the service, and the order in which it
    serves its connections would dominate the slowest times.
    """

    def __init__(
        self, received: asyncio.StreamReader, sent: asyncio.StreamWriter, request: bytes
    ) -> None:
        self._received, self._sent, self._request = received, sent, request

    @classmethod
    async def connect(cls, stack: Stack, path: str) -> "_Reader":
        address = urlsplit(stack.url)
        received, sent = await asyncio.open_connection(address.hostname, address.port)
        lines = [f"GET {path} HTTP/1.1", f"Host: {address.netloc}"]
        lines += [f"{name}: {value}" for name, value in stack.headers.items()]
        return cls(received, sent, ("\r\n".join(lines) + "\r\n\r\n").encode())

    async def read(self) -> None:
        self._sent.write(self._request)
        head = (await self._received.readuntil(b"\r\n\r\n")).lower()
        assert head.startswith(b"http/1.1 200 "), head
        length = re.search(rb"content-length: (\d+)", head)
        assert length is not None
        await self._received.readexactly(int(length.group(1)))

    def close(self) -> None:
        self._sent.close()
