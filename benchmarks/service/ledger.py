"""Committed charges compared with plain rows of the same size, one transaction each."""

import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import text

from benchmarks.report import print_table
from benchmarks.service.stack import Stack
from service.data.ledger import repository
from service.data.ledger.records import LedgerOperation

OPERATIONS = 1000
OUTCOME = bytes(8 * 100)
"""A noisy marginal of a hundred cells."""


def ledger_operations(stack: Stack, *, workers: int) -> None:
    """Measure one worker, then several, each with its own population."""
    with stack.owner.begin() as connection:
        connection.execute(text('CREATE TABLE plain (id uuid, sequence bigint, "values" bytea)'))
    rows = []
    for number in (1, workers):
        plain = _seconds_at_once([lambda: _insert(stack) for _ in range(number)])
        charged = _seconds_at_once([_charging(stack) for _ in range(number)])
        done = number * OPERATIONS
        rows.append([number, done / plain, done / charged, charged / plain])
    print_table(
        "Transactions per second on the same Postgres, with fsync, each worker on its own population",
        ["workers", "plain INSERT", "commit_operation", "times as long"],
        rows,
    )


def _insert(stack: Stack) -> None:
    statement = text('INSERT INTO plain (id, sequence, "values") VALUES (:id, :sequence, :outcome)')
    release = uuid.uuid4()
    for sequence in range(OPERATIONS):
        with stack.owner.begin() as connection:
            parameters = {"id": release, "sequence": sequence, "outcome": OUTCOME}
            connection.execute(statement, parameters)


def _charging(stack: Stack) -> Callable[[], None]:
    """Claim a release; returns a function that charges all its operations."""
    population, release = stack.population(1.0), uuid.uuid4()
    with stack.app.begin() as connection:
        repository.reserve(
            connection,
            population,
            release_id=release,
            amount_units=OPERATIONS,
            dataset_hash=bytes(32),
            spec_hash=bytes(32),
        )
        epoch = repository.claim(connection, release, holder="benchmark", lease_seconds=3600)

    def charge() -> None:
        for sequence in range(OPERATIONS):
            operation = LedgerOperation(sequence, "measure", {"marginal": ["age"]}, 2.5, 1, OUTCOME)
            with stack.app.begin() as connection:
                repository.commit_operation(connection, release, epoch=epoch, operation=operation)

    return charge


def _seconds_at_once(actions: list[Callable[[], None]]) -> float:
    """Seconds until all actions are done."""
    with ThreadPoolExecutor(len(actions)) as pool:
        start = time.perf_counter()
        for done in [pool.submit(action) for action in actions]:
            done.result()
        return time.perf_counter() - start
