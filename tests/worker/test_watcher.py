"""The soak's watcher detects what must never happen."""

from uuid import UUID

import pytest
from sqlalchemy import text

from tests.worker.support import Stack
from tests.worker.watcher import Watcher
from worker.releases import run_release

pytestmark = pytest.mark.random

BREAKS = {
    "changed outcome": (
        'UPDATE ledger.outcome SET "values" = "values" || \'\\x0000000000000000\''
        " WHERE release_id = :id AND sequence = 1",
        'UPDATE ledger.outcome SET "values" = substr("values", 1, octet_length("values") - 8)'
        " WHERE release_id = :id AND sequence = 1",
    ),
    "lost operation": (
        "UPDATE ledger.operation SET sequence = 1000 WHERE release_id = :id AND sequence = 6",
        "UPDATE ledger.operation SET sequence = 6 WHERE release_id = :id AND sequence = 1000",
    ),
    "second charge": (
        "UPDATE ledger.account SET spent_units = spent_units + 1 WHERE population_id ="
        " (SELECT account FROM ledger.reservation WHERE release_id = :id)",
        "UPDATE ledger.account SET spent_units = spent_units - 1 WHERE population_id ="
        " (SELECT account FROM ledger.reservation WHERE release_id = :id)",
    ),
    "second end": (
        "UPDATE release SET state = 'failed' WHERE id = :id",
        "UPDATE release SET state = 'succeeded' WHERE id = :id",
    ),
}


@pytest.mark.parametrize("kind", BREAKS)
def test_what_it_notices(stack: Stack, dataset: UUID, kind: str) -> None:
    release = stack.submit(dataset)
    run_release(stack.context, release)
    watcher = Watcher(stack.owner)
    watcher.look()
    watcher.look()
    assert watcher.faults == [] and watcher.outcomes >= 7
    harm, repair = BREAKS[kind]
    tamper(stack, harm, release)
    watcher.look()
    tamper(stack, repair, release)
    assert len(watcher.faults) == 1


def tamper(stack: Stack, statement: str, release: UUID) -> None:
    """A superuser's change, which fires no trigger."""
    with stack.owner.begin() as connection:
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        connection.execute(text(statement), {"id": release})
