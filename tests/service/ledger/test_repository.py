"""What each function does and refuses, with a single caller."""

import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from service.data.ledger import errors, repository
from service.data.ledger.records import LedgerAccount, LedgerOperation

from .support import HASH, OTHER_HASH, Ledger, charge, pack


@pytest.fixture
def population(ledger: Ledger) -> UUID:
    return ledger.open_account(1000)


def test_one_release_from_reservation_to_end(ledger: Ledger, population: UUID) -> None:
    release = ledger.reserve(population, 600)
    assert ledger.balance(population) == (0, 600)
    epoch = ledger.claim(release)
    assert epoch == 1
    first, second = charge(0, 100, -5, 2**62), charge(1, 250)
    ledger.commit(release, epoch, first)
    assert ledger.balance(population) == (100, 500)
    ledger.commit(release, epoch, second)
    assert ledger.journal(release) == [first, second]
    assert ledger.finish(release, epoch) == 250
    assert ledger.balance(population) == (350, 0)


def test_audit_tells_every_change(ledger: Ledger, population: UUID) -> None:
    release = ledger.reserve(population, 600)
    epoch = ledger.claim(release)
    ledger.commit(release, epoch, charge(0, 100))
    ledger.finish(release, epoch)
    ledger.set_cap(population, 900)
    with ledger.app.connect() as connection:
        entries = repository.entries(connection, population, limit=10)
        assert repository.entries(connection, population, after=2, limit=2) == entries[2:4]
    assert [(e.seq, e.kind, e.release_id, e.operation, e.units) for e in entries] == [
        (1, "open_account", None, None, 1000),
        (2, "reserve", release, None, 600),
        (3, "operation", release, 0, 100),
        (4, "close", release, None, 500),
        (5, "set_cap", None, None, 900),
    ]
    assert entries[0].previous_hash == bytes(32)
    assert [e.previous_hash for e in entries[1:]] == [e.hash for e in entries[:-1]]


def test_session_serves_as_well_and_nothing_commits(ledger: Ledger, population: UUID) -> None:
    with Session(ledger.app) as session:
        repository.set_cap(session, population, cap_units=5000)
        assert repository.account(session, population).left_units == 5000
    with ledger.app.connect() as connection:
        assert repository.account(connection, population).left_units == 1000


def test_reserving_again(ledger: Ledger, population: UUID) -> None:
    release = ledger.reserve(population, 600)
    assert ledger.reserve(population, 600, release) == release
    assert ledger.balance(population) == (0, 600)
    with pytest.raises(errors.LedgerConflict):
        ledger.reserve(population, 601, release)
    with pytest.raises(errors.LedgerConflict):
        ledger.reserve(ledger.open_account(1000), 600, release)
    with pytest.raises(errors.LedgerConflict), ledger.app.begin() as connection:
        repository.reserve(
            connection,
            population,
            release_id=release,
            amount_units=600,
            dataset_hash=OTHER_HASH,
            spec_hash=HASH,
        )


def test_filter_accepts_exactly_up_to_the_cap(ledger: Ledger, population: UUID) -> None:
    ledger.reserve(population, 999)
    with pytest.raises(errors.BudgetExhausted):
        ledger.reserve(population, 2)
    ledger.reserve(population, 1)
    with pytest.raises(errors.BudgetExhausted):
        ledger.reserve(population, 2**63 - 1)


def test_spent_budget_never_comes_back(ledger: Ledger, population: UUID) -> None:
    release = ledger.reserve(population, 1000)
    epoch = ledger.claim(release)
    ledger.commit(release, epoch, charge(0, 1000))
    assert ledger.finish(release, epoch) == 0
    with pytest.raises(errors.BudgetExhausted):
        ledger.reserve(population, 1)


def test_rest_is_released_once(ledger: Ledger, population: UUID) -> None:
    release = ledger.reserve(population, 600)
    other = ledger.reserve(population, 300)
    epoch = ledger.claim(release)
    assert [ledger.finish(release, epoch) for _ in range(3)] == [600, 0, 0]
    assert ledger.close_unclaimed(release) == 0
    assert [ledger.close_unclaimed(other) for _ in range(2)] == [300, 0]
    assert ledger.balance(population) == (0, 0)


def test_closed_reservation_accepts_nothing(ledger: Ledger, population: UUID) -> None:
    release = ledger.reserve(population, 600)
    epoch = ledger.claim(release)
    ledger.finish(release, epoch)
    with pytest.raises(errors.Closed):
        ledger.commit(release, epoch, charge(0, 1))
    with pytest.raises(errors.Closed):
        ledger.claim(release)
    assert not ledger.heartbeat(release, epoch)


def test_zombie_cannot_go_on(ledger: Ledger, population: UUID) -> None:
    release = ledger.reserve(population, 600)
    zombie = ledger.claim(release, "first")
    with pytest.raises(errors.LeaseHeld):
        ledger.claim(release, "second")
    ledger.expire_lease(release)
    current = ledger.claim(release, "second")
    assert current == zombie + 1
    with pytest.raises(errors.StaleLease):
        ledger.commit(release, zombie, charge(0, 1))
    with pytest.raises(errors.StaleLease):
        ledger.finish(release, zombie)
    assert not ledger.heartbeat(release, zombie)
    ledger.commit(release, current, charge(0, 1))


def test_expired_lease_lasts_until_it_is_taken_over(ledger: Ledger, population: UUID) -> None:
    release = ledger.reserve(population, 600)
    epoch = ledger.claim(release)
    ledger.expire_lease(release)
    ledger.commit(release, epoch, charge(0, 1))
    assert ledger.heartbeat(release, epoch)
    with pytest.raises(errors.LeaseHeld):
        ledger.close_unclaimed(release)


def test_worker_learns_that_the_service_closed_its_release(
    ledger: Ledger, population: UUID
) -> None:
    release = ledger.reserve(population, 600)
    epoch = ledger.claim(release)
    ledger.expire_lease(release)
    assert ledger.close_unclaimed(release) == 600
    assert not ledger.heartbeat(release, epoch)
    with pytest.raises(errors.StaleLease):
        ledger.commit(release, epoch, charge(0, 1))
    with pytest.raises(errors.StaleLease):
        ledger.finish(release, epoch)


@pytest.mark.parametrize("epoch", [0, -1, 2])
def test_only_a_claim_gives_an_epoch(ledger: Ledger, population: UUID, epoch: int) -> None:
    release = ledger.reserve(population, 600)
    with pytest.raises(errors.StaleLease):
        ledger.commit(release, epoch, charge(0, 1))
    with pytest.raises(errors.StaleLease):
        ledger.finish(release, epoch)


def test_operations_come_in_order_and_once(ledger: Ledger, population: UUID) -> None:
    release = ledger.reserve(population, 600)
    epoch = ledger.claim(release)
    with pytest.raises(errors.OutOfOrder) as refusal:
        ledger.commit(release, epoch, charge(1, 1))
    assert not isinstance(refusal.value, errors.AlreadyCommitted)
    ledger.commit(release, epoch, charge(0, 1))
    for again in (charge(0, 1), charge(0, 2, 7)):
        with pytest.raises(errors.AlreadyCommitted):
            ledger.commit(release, epoch, again)
    with pytest.raises(errors.BudgetExhausted):
        ledger.commit(release, epoch, charge(1, 600))
    assert ledger.balance(population) == (1, 599)


def test_free_operation(ledger: Ledger, population: UUID) -> None:
    release = ledger.reserve(population, 600)
    epoch = ledger.claim(release)
    free = LedgerOperation(0, "rows", "", 0.0, 0, pack(48842))
    ledger.commit(release, epoch, free)
    assert ledger.journal(release) == [free]
    assert ledger.balance(population) == (0, 600)


NAN, INFINITY = float("nan"), float("inf")
NOT_PRICES: list[Any] = [-1, NAN, 1.0, 2**63, True]


@pytest.mark.parametrize(
    "operation",
    [replace(charge(0, 1), scale=scale) for scale in (NAN, INFINITY, -INFINITY, 0.0, -1.0)]
    + [replace(charge(0, 0), scale=scale) for scale in (NAN, INFINITY, -1.0)]
    + [replace(charge(0, 1), price_units=price) for price in NOT_PRICES],
)
def test_invalid_charge(ledger: Ledger, population: UUID, operation: LedgerOperation) -> None:
    release = ledger.reserve(population, 600)
    epoch = ledger.claim(release)
    with pytest.raises(errors.InvalidAmount):
        ledger.commit(release, epoch, operation)


@pytest.mark.parametrize("amount", [0, -1, -(2**63) + 1, 2**63, NAN, INFINITY, 1.5, True])
def test_invalid_amount(ledger: Ledger, population: UUID, amount: int) -> None:
    refused: list[Callable[[], object]] = [
        lambda: ledger.reserve(population, amount),
        lambda: ledger.set_cap(population, amount),
        lambda: ledger.open_account(amount),
    ]
    for call in refused:
        with pytest.raises(errors.InvalidAmount):
            call()


@pytest.mark.parametrize("seconds", [0, -1, NAN, INFINITY, 86401])
def test_invalid_lease(ledger: Ledger, population: UUID, seconds: float) -> None:
    release = ledger.reserve(population, 600)
    with pytest.raises(errors.InvalidAmount), ledger.app.begin() as connection:
        repository.claim(connection, release, holder="worker", lease_seconds=seconds)


def test_cap_moves_but_not_below_what_is_promised(ledger: Ledger, population: UUID) -> None:
    ledger.reserve(population, 600)
    ledger.set_cap(population, 600)
    with pytest.raises(errors.BudgetExhausted):
        ledger.set_cap(population, 599)
    with pytest.raises(errors.BudgetExhausted):
        ledger.reserve(population, 1)
    ledger.set_cap(population, 601)
    ledger.reserve(population, 1)


def test_second_account_of_a_population(ledger: Ledger, population: UUID) -> None:
    with pytest.raises(errors.LedgerConflict), ledger.app.begin() as connection:
        repository.open_account(
            connection,
            population,
            unit="row",
            relation="replace_one",
            rows_per_unit=1,
            cap_units=10**12,
            delta_units=1,
        )


def test_unknown_things(ledger: Ledger) -> None:
    unknown = uuid.uuid4()
    with ledger.app.connect() as connection:
        for read in (repository.account, repository.reservation):
            with pytest.raises(errors.UnknownEntry):
                read(connection, unknown)
    calls: list[Callable[[], object]] = [
        lambda: ledger.reserve(unknown, 1),
        lambda: ledger.set_cap(unknown, 1),
        lambda: ledger.claim(unknown),
        lambda: ledger.heartbeat(unknown, 1),
        lambda: ledger.commit(unknown, 1, charge(0, 1)),
        lambda: ledger.journal(unknown),
        lambda: ledger.finish(unknown, 1),
        lambda: ledger.close_unclaimed(unknown),
    ]
    for call in calls:
        with pytest.raises(errors.UnknownEntry):
            call()


def test_reopened_reservation_goes_on_from_its_journal(ledger: Ledger, population: UUID) -> None:
    release = ledger.reserve(population, 600)
    zombie = ledger.claim(release)
    ledger.commit(release, zombie, charge(0, 100, 7))
    ledger.finish(release, zombie)
    assert ledger.reopen(release) == 500
    assert ledger.balance(population) == (100, 500)
    with pytest.raises(errors.StaleLease):
        ledger.commit(release, zombie, charge(1, 1))
    epoch = ledger.claim(release)
    assert ledger.journal(release) == [charge(0, 100, 7)]
    with pytest.raises(errors.AlreadyCommitted):
        ledger.commit(release, epoch, charge(0, 100, 8))
    with pytest.raises(errors.BudgetExhausted):
        ledger.commit(release, epoch, charge(1, 501))
    ledger.commit(release, epoch, charge(1, 500))
    assert ledger.finish(release, epoch) == 0
    assert ledger.balance(population) == (600, 0)
    with ledger.app.connect() as connection:
        entries = repository.entries(connection, population, limit=10)
    assert [(entry.kind, entry.units) for entry in entries][3:] == [
        ("close", 500),
        ("reopen", 500),
        ("operation", 500),
        ("close", 0),
    ]


def test_reopening_passes_the_same_filter(ledger: Ledger, population: UUID) -> None:
    release = ledger.reserve(population, 600)
    with pytest.raises(errors.LedgerConflict):
        ledger.reopen(release)
    ledger.close_unclaimed(release)
    other = ledger.reserve(population, 401)
    with pytest.raises(errors.BudgetExhausted):
        ledger.reopen(release)
    ledger.close_unclaimed(other)
    ledger.reserve(population, 400)
    assert ledger.reopen(release) == 600
    assert ledger.balance(population) == (0, 1000)


def test_balance_at_every_moment_of_the_past(ledger: Ledger) -> None:
    """Later entries are undone; before it was opened, an account has its first cap.

    Charges of a running job count as reserved until its reservation closes.
    """
    past: list[tuple[datetime, LedgerAccount]] = []
    with ledger.app.connect() as connection:
        unopened = connection.scalar(text("SELECT clock_timestamp()"))
    population = ledger.open_account(1000)

    def look(under_way: int = 0) -> None:
        with ledger.app.connect() as connection:
            moment = connection.scalar(text("SELECT clock_timestamp()"))
            now = repository.account(connection, population)
        shown = replace(
            now,
            spent_units=now.spent_units - under_way,
            reserved_units=now.reserved_units + under_way,
        )
        past.append((moment, shown))

    look()
    first, second = ledger.reserve(population, 600), ledger.reserve(population, 300)
    look()
    epoch = ledger.claim(first)
    for sequence, price, spent in ((0, 100, 100), (1, 0, 100), (2, 250, 350)):
        ledger.commit(first, epoch, charge(sequence, price))
        look(spent)
    ledger.set_cap(population, 5000)
    look(350)
    other = ledger.claim(second)
    ledger.commit(second, other, charge(0, 40))
    ledger.finish(second, other)
    look(350)
    ledger.reopen(second)
    ledger.set_cap(population, 3000)
    look(390)
    ledger.close_unclaimed(second)
    ledger.set_cap(population, 2000)
    ledger.finish(first, epoch)
    look()
    with ledger.app.connect() as connection:
        for moment, account in past:
            assert repository.account_at(connection, population, moment) == account
        opened = replace(past[0][1], spent_units=0, reserved_units=0)
        assert repository.account_at(connection, population, unopened) == opened
        with pytest.raises(errors.UnknownEntry):
            repository.account_at(connection, uuid.uuid4(), unopened)


def test_the_last_midnight_is_that_of_the_ledgers_clock(ledger: Ledger) -> None:
    with ledger.app.connect() as connection:
        connection.execute(text("SET TIME ZONE 'Pacific/Kiritimati'"))
        midnight = repository.last_midnight(connection).astimezone(UTC)
        now = connection.scalar(text("SELECT clock_timestamp()"))
    assert midnight.time() == time()
    assert timedelta(0) <= now - midnight < timedelta(days=1, minutes=10)
