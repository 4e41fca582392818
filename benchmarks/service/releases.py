"""Releases submitted at the limit of a cap: speed of acceptance and refusal, and exactness."""

import asyncio
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from sqlalchemy import Engine

from benchmarks.report import print_table
from benchmarks.service.measure import repeat
from benchmarks.service.stack import Stack
from scrim.spec.budget import UNITS_PER_RHO
from service.data.ledger import repository as ledger

PRICE = 0.001
"""The budget of one release, in rho."""
FITTING = 100
"""Number of releases that fit, where the limit of a cap is measured."""


def releases_at_the_edge(stack: Stack, *, submissions: int, clients: int) -> None:
    """Measure submissions that all fit, that are all refused, and of which some fit."""
    rows = []
    for title, fitting, at_once in (
        ("all fit", submissions, clients),
        ("none fits", 0, clients),
        (f"{FITTING} fit", FITTING, clients),
        (f"{FITTING} fit", FITTING, submissions),
    ):
        population = stack.population(round((fitting or 0.5) * PRICE, 6))
        dataset = stack.settled_dataset(population)
        with _watched(stack.app, population) as held:
            start = time.perf_counter()
            outcomes = asyncio.run(submit(stack, dataset, submissions, at_once))
            took = time.perf_counter() - start
        accepted, refused = outcomes["202"], outcomes["/problems/budget-exhausted"]
        assert (accepted, refused) == (fitting, submissions - fitting), outcomes
        share = _largest_share(stack.app, population, held, accepted)
        rows.append([title, at_once, accepted, refused, accepted / took, refused / took, share])
    print_table(
        f"{submissions:,} releases submitted over HTTP; the account was watched throughout",
        ["", "at once", "accepted", "refused", "accepted/s", "refused/s", "most held / cap"],
        rows,
    )


async def submit(stack: Stack, dataset: str, submissions: int, at_once: int) -> Counter[str]:
    """Submit releases of one price; returns the number of each outcome."""
    body = {
        "dataset_id": dataset,
        "workload": [{"type": "marginals", "k": 2}],
        "mechanism": {"name": "mwem", "rounds": 3},
        "budget": {"rho": PRICE},
    }
    outcomes: Counter[str] = Counter()

    async with stack.client(at_once) as client:

        async def submit() -> None:
            headers = {"Idempotency-Key": uuid.uuid4().hex}
            answer = await client.post("/v1/releases", json=body, headers=headers)
            is_accepted = answer.status_code == 202
            outcomes["202" if is_accepted else str(answer.json()["type"])] += 1

        await repeat(submit, times=submissions, at_once=at_once)
    return outcomes


def _largest_share(engine: Engine, population: UUID, held: list[int], accepted: int) -> float:
    """The largest share of the cap that was spent and reserved; it must not exceed 1."""
    with engine.connect() as connection:
        account = ledger.account(connection, population)
    assert account.reserved_units == accepted * round(PRICE * UNITS_PER_RHO)
    assert max(held) <= account.cap_units
    return max(held) / account.cap_units


@contextmanager
def _watched(engine: Engine, population: UUID) -> Iterator[list[int]]:
    """Sample what a population has spent and reserved, including at the end."""
    seen, stopping = [0], threading.Event()

    def look() -> None:
        is_last = False
        while not is_last:
            is_last = stopping.wait(0.005)
            with engine.connect() as connection:
                account = ledger.account(connection, population)
            seen.append(account.spent_units + account.reserved_units)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        stopping.set()
        thread.join()
