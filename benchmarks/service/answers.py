"""Questions to a released model, once the worker that answers them is warm."""

import asyncio
import random
from typing import Any

from benchmarks.report import print_table
from benchmarks.service.measure import latencies, median_and_p99
from benchmarks.service.stack import Stack

QUESTIONS = 200
WORKLOAD = [{"type": "marginals", "k": 2}]


def free_answers(stack: Stack) -> None:
    """Ask one release for answers and for rows, by one analyst and by several."""
    rows = []
    with stack.worker("all"):
        release = released(stack)
    with stack.worker("fast"):
        for title, part, body in (
            ("answers, all 2-way marginals", "answers", {"workload": WORKLOAD}),
            ("1,000 rows", "samples", {"rows": 1000}),
        ):
            path = f"/v1/releases/{release}/{part}"
            asyncio.run(_ask(stack, path, body, times=1, at_once=1))
            for at_once in (1, 4):
                times = asyncio.run(_ask(stack, path, body, times=QUESTIONS, at_once=at_once))
                rows.append([title, at_once, *median_and_p99(times)])
    print_table(
        f"{QUESTIONS} questions to a released model over HTTP, one warm worker, milliseconds",
        ["", "at once", "median", "p99"],
        rows,
    )


def released(stack: Stack) -> str:
    """A finished and published release of a small table."""
    dataset = stack.dataset(stack.population(1.0))
    rng = random.Random(1)
    lines = (f"{rng.choice('FM')},{rng.randrange(100)}\n" for _ in range(10_000))
    stack.upload(dataset, ("sex,age\n" + "".join(lines)).encode())
    stack.wait_for(f"/v1/datasets/{dataset}", "ready")
    body = {
        "dataset_id": dataset,
        "workload": WORKLOAD,
        "mechanism": {"name": "mwem", "rounds": 3},
        "budget": {"rho": 0.1},
        "publish": True,
    }
    release = stack.create("/v1/releases", body)
    stack.wait_for(f"/v1/releases/{release}", "succeeded")
    return release


async def _ask(
    stack: Stack, path: str, body: dict[str, Any], *, times: int, at_once: int
) -> list[float]:
    async with stack.client(at_once) as client:

        async def ask() -> None:
            (await client.post(path, json=body)).raise_for_status()

        return await latencies(ask, times=times, at_once=at_once)
