"""One large CSV: time and memory of its upload and its ingest."""

import asyncio
import random
import time
from collections.abc import AsyncIterator

import httpx

from benchmarks.report import print_table
from benchmarks.service.measure import MEBIBYTE, watched_memory
from benchmarks.service.stack import Stack

SERVICE_LIMIT_MIB = 300 * 10**6 / MEBIBYTE
WORKER_LIMIT_MIB = 1500 * 10**6 / MEBIBYTE

TOWNS = [f"town {number}" for number in range(100)]
SCHEMA = {
    "columns": [
        {"name": "sex", "type": "categorical", "values": ["F", "M"]},
        {"name": "age", "type": "integer", "lower": 0, "upper": 99, "bins": {"width": 10}},
        {"name": "town", "type": "categorical", "values": TOWNS},
        {"name": "income", "type": "real", "lower": 0, "upper": 100000, "bins": {"count": 20}},
    ]
}


def upload_and_ingest(stack: Stack, mebibytes: int) -> None:
    """Send a table as fast as the service accepts it, then wait until a worker has read it."""
    dataset = stack.dataset(stack.population(1.0), SCHEMA)
    with stack.worker("ingest") as worker, watched_memory(worker) as worker_memory:
        with watched_memory(stack.process) as service_memory:
            start = time.perf_counter()
            answer = asyncio.run(_upload(stack, dataset, mebibytes))
            uploaded = time.perf_counter() - start
        assert answer.status_code == 202, answer.text
        start = time.perf_counter()
        stack.wait_for(f"/v1/datasets/{dataset}", "ready")
        ingested = time.perf_counter() - start
    print_table(
        f"One CSV of {mebibytes:,} MiB, encrypted in a local folder; memory of whole process trees",
        ["", "seconds", "MiB/s", "MiB before", "MiB at its peak", "MiB allowed"],
        [
            [
                "upload: service",
                uploaded,
                mebibytes / uploaded,
                service_memory.before,
                service_memory.peak,
                SERVICE_LIMIT_MIB,
            ],
            [
                "ingest: worker",
                ingested,
                mebibytes / ingested,
                worker_memory.before,
                worker_memory.peak,
                WORKER_LIMIT_MIB,
            ],
        ],
    )
    assert service_memory.peak < SERVICE_LIMIT_MIB
    assert worker_memory.peak < WORKER_LIMIT_MIB


async def _upload(stack: Stack, dataset: str, mebibytes: int) -> httpx.Response:
    headers = {"Content-Type": "text/csv", "Content-Length": str(mebibytes * MEBIBYTE)}
    async with stack.client() as client:
        path = f"/v1/datasets/{dataset}/content"
        return await client.put(path, content=_table(mebibytes * MEBIBYTE), headers=headers)


async def _table(size: int) -> AsyncIterator[bytes]:
    """A table of exactly this many bytes, with repeated rows."""
    header = b"sex,age,town,income\n"
    rows = _rows()
    yield header
    left = size - len(header)
    while left >= len(rows):
        yield rows
        left -= len(rows)
    # Whole rows, padded with blanks after the last value, which are not part of a number.
    whole = rows[: rows.rfind(b"\n", 0, left) + 1]
    yield whole[:-1] + b" " * (left - len(whole)) + b"\n"


def _rows() -> bytes:
    """About a MiB of rows."""
    rng = random.Random(1)
    lines = (
        f"{rng.choice('FM')},{rng.randrange(100)},{rng.choice(TOWNS)},{rng.uniform(0, 1e5):.2f}\n"
        for _ in range(40_000)
    )
    return "".join(lines).encode()
