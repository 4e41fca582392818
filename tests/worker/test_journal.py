"""Charge and outcome are committed together; after an unknown result, an attempt uses no outcome."""

import uuid
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from sqlalchemy.exc import OperationalError

from service.data.ledger import repository as ledger
from synth.journal import Operation
from tests.worker.support import Stack
from worker.errors import Abandoned, LeaseLost
from worker.journal import LedgerJournal

ROWS = Operation("rows", "", 2.5, 1000, np.array([-7, 2**62, 0]))
MEASURED = Operation("measure", 'sex,"a, b"', 0.1 + 0.2, 5, np.arange(3))


@pytest.fixture
def release(stack: Stack, dataset: UUID) -> UUID:
    return stack.submit(dataset)


def claim(stack: Stack, release: UUID) -> int:
    with stack.context.engine.begin() as connection:
        return ledger.claim(connection, release, holder=uuid.uuid4().hex, lease_seconds=60)


def test_reads_what_it_wrote(stack: Stack, release: UUID) -> None:
    journal = LedgerJournal(stack.context.engine, release, epoch=claim(stack, release))
    assert journal.operations() == ()
    journal.commit(ROWS)
    journal.commit(MEASURED)
    read = LedgerJournal(stack.context.engine, release, epoch=99).operations()
    for found, wanted in zip(read, (ROWS, MEASURED), strict=True):
        assert (found.kind, found.asked, found.scale, found.price) == (
            wanted.kind,
            wanted.asked,
            wanted.scale,
            wanted.price,
        )
        np.testing.assert_array_equal(found.values, wanted.values)
        assert found.values.dtype == np.int64
    assert stack.reservation(release).spent_units == 1005


def test_a_zombie_commits_nothing(stack: Stack, release: UUID) -> None:
    zombie = LedgerJournal(stack.context.engine, release, epoch=claim(stack, release))
    zombie.operations()
    stack.expire_lease(release)
    successor = LedgerJournal(stack.context.engine, release, epoch=claim(stack, release))
    with pytest.raises(LeaseLost):
        zombie.commit(ROWS)
    assert successor.operations() == ()
    successor.commit(MEASURED)
    with pytest.raises(LeaseLost):
        zombie.commit(ROWS)
    assert [each.kind for each in stack.journal(release)] == ["measure"]


def test_a_database_that_became_read_only_ends_the_attempt(stack: Stack, release: UUID) -> None:
    """As after a failover to a standby: nothing is wrong with the release."""
    epoch = claim(stack, release)
    standby = stack.context.engine.execution_options(postgresql_readonly=True)
    journal = LedgerJournal(standby, release, epoch=epoch)
    journal.operations()
    with pytest.raises(Abandoned):
        journal.commit(ROWS)
    assert stack.journal(release) == []


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_lost_answer_ends_the_attempt(
    stack: Stack, release: UUID, is_committed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next attempt finds in the ledger whether it was committed."""
    epoch = claim(stack, release)
    commit = ledger.commit_operation

    def lose_answer(_connection: Any, *arguments: Any, **named: Any) -> None:
        if is_committed:
            with stack.context.engine.begin() as connection:
                commit(connection, *arguments, **named)
        raise OperationalError("COMMIT", {}, Exception("server closed the connection"))

    journal = LedgerJournal(stack.context.engine, release, epoch=epoch)
    journal.operations()
    monkeypatch.setattr(ledger, "commit_operation", lose_answer)
    with pytest.raises(Abandoned):
        journal.commit(ROWS)
    monkeypatch.undo()
    resumed = LedgerJournal(stack.context.engine, release, epoch=epoch)
    assert len(resumed.operations()) == is_committed
    resumed.commit(MEASURED)
    assert len(stack.journal(release)) == 1 + is_committed
