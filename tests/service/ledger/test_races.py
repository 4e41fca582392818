"""Many writers at once, with connections of their own and real commits."""

import random
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from uuid import UUID

import pytest
from sqlalchemy import text

from service.data.db import APP_ROLE
from service.data.ledger.chain import verify_chain
from service.data.ledger.errors import (
    AlreadyCommitted,
    BudgetExhausted,
    LeaseHeld,
    LedgerConflict,
    LedgerError,
    StaleLease,
)
from service.data.ledger.repository import commit_operation, heartbeat, reserve

from .support import HASH, LONG_LEASE, Ledger, at_once, charge

WRITERS = 12


def outcomes(answers: Sequence[object]) -> Counter[str]:
    """How many answers of each type."""
    return Counter(type(answer).__name__ for answer in answers)


@pytest.mark.parametrize("room", [0, 1, 7, 12])
def test_exactly_what_fits_under_the_cap_is_accepted(ledger: Ledger, room: int) -> None:
    amount = 10
    population = ledger.open_account(amount * room + amount - 1)
    answers = at_once(*[partial(ledger.reserve, population, amount)] * WRITERS)
    assert outcomes(answers) == Counter({"UUID": room, BudgetExhausted.__name__: WRITERS - room})
    assert ledger.balance(population) == (0, amount * room)


def test_one_release_reserves_once(ledger: Ledger) -> None:
    population, release = ledger.open_account(1000), uuid.uuid4()
    answers = at_once(*[partial(ledger.reserve, population, 400, release)] * WRITERS)
    assert answers == [release] * WRITERS
    assert ledger.balance(population) == (0, 400)


def test_one_release_pays_from_one_account(ledger: Ledger) -> None:
    populations, release = [ledger.open_account(1000) for _ in range(WRITERS)], uuid.uuid4()
    answers = at_once(*(partial(ledger.reserve, each, 400, release) for each in populations))
    assert outcomes(answers) == Counter({"UUID": 1, LedgerConflict.__name__: WRITERS - 1})


def test_one_worker_gets_the_lease(ledger: Ledger) -> None:
    release = ledger.reserve(ledger.open_account(1000), 400)
    for epoch in (1, 2, 3):
        answers = at_once(*(partial(ledger.claim, release, f"worker {n}") for n in range(WRITERS)))
        assert outcomes(answers) == Counter({"int": 1, LeaseHeld.__name__: WRITERS - 1})
        assert epoch in answers
        ledger.expire_lease(release)


def test_one_operation_is_charged_once(ledger: Ledger) -> None:
    population = ledger.open_account(1000)
    release = ledger.reserve(population, 400)
    epoch = ledger.claim(release)
    answers = at_once(
        *(partial(ledger.commit, release, epoch, charge(0, 30, n)) for n in range(WRITERS))
    )
    assert outcomes(answers) == Counter({"NoneType": 1, AlreadyCommitted.__name__: WRITERS - 1})
    assert ledger.balance(population) == (30, 370)
    assert ledger.journal(release) == [charge(0, 30, answers.index(None))]


def test_rest_is_released_exactly_once(ledger: Ledger) -> None:
    population = ledger.open_account(1000)
    release = ledger.reserve(population, 400)
    epoch = ledger.claim(release)
    ledger.commit(release, epoch, charge(0, 30))
    ledger.expire_lease(release)
    answers = at_once(
        *[partial(ledger.finish, release, epoch)] * (WRITERS // 2),
        *[partial(ledger.close_unclaimed, release)] * (WRITERS // 2),
    )
    released = [answer for answer in answers if isinstance(answer, int)]
    assert sorted(released)[-1] == sum(released) == 370
    # If the service was first, the worker's late finish is refused.
    assert outcomes(answers).keys() <= {"int", StaleLease.__name__}
    assert ledger.balance(population) == (30, 0)


def test_one_release_is_reopened_once(ledger: Ledger) -> None:
    population = ledger.open_account(1000)
    release = ledger.reserve(population, 400)
    ledger.close_unclaimed(release)
    answers = at_once(*[partial(ledger.reopen, release)] * WRITERS)
    assert outcomes(answers) == Counter({"int": 1, LedgerConflict.__name__: WRITERS - 1})
    assert ledger.balance(population) == (0, 400)


def test_what_is_reopened_and_what_is_reserved_fit_under_the_cap(ledger: Ledger) -> None:
    population = ledger.open_account(50)
    closed = [ledger.reserve(population, 10) for _ in range(5)]
    for release in closed:
        ledger.close_unclaimed(release)
    answers = at_once(
        *(partial(ledger.reopen, release) for release in closed),
        *[partial(ledger.reserve, population, 10)] * 5,
    )
    assert outcomes(answers)[BudgetExhausted.__name__] == 5
    assert ledger.balance(population) == (0, 50)


def test_cap_and_reservations_race(ledger: Ledger) -> None:
    population = ledger.open_account(120)
    answers = at_once(
        *[partial(ledger.reserve, population, 10)] * (WRITERS - 1),
        partial(ledger.set_cap, population, 55),
    )
    accepted = sum(isinstance(answer, UUID) for answer in answers)
    assert ledger.balance(population) == (0, 10 * accepted)
    # Either the cap came in time for five, or too late to be lowered at all.
    assert accepted == (5 if answers[-1] is None else WRITERS - 1)


def test_takeover_waits_for_a_commit_under_way_and_sees_it(ledger: Ledger) -> None:
    """The next worker finds every commit of the previous one in the journal."""
    release = ledger.reserve(ledger.open_account(1000), 400)
    zombie = ledger.claim(release)
    ledger.expire_lease(release)

    def commit_last() -> None:
        with ledger.app.begin() as connection:
            commit_operation(connection, release, epoch=zombie, operation=charge(0, 30))

    def take_over() -> int:
        ledger.claim(release)
        return len(ledger.journal(release))

    committed, seen = at_once(commit_last, take_over)
    assert (committed is None, seen) in [(True, 1), (False, 0)]
    with pytest.raises(StaleLease):
        ledger.commit(release, zombie, charge(1, 30))


def test_rows_that_refer_to_an_account_do_not_deadlock(ledger: Ledger) -> None:
    """A foreign key locks the account too, before the reservation made in the same transaction."""
    population = ledger.open_account(1000)
    with ledger.owner.begin() as connection:
        connection.execute(
            text("CREATE TABLE referring (population uuid REFERENCES ledger.account)")
        )
        connection.execute(text(f"GRANT INSERT ON referring TO {APP_ROLE}"))

    def create_release() -> None:
        with ledger.app.begin() as connection:
            connection.execute(
                text("INSERT INTO referring VALUES (:population)"), {"population": population}
            )
            reserve(
                connection,
                population,
                release_id=uuid.uuid4(),
                amount_units=10,
                dataset_hash=HASH,
                spec_hash=HASH,
            )

    assert at_once(*[create_release] * WRITERS) == [None] * WRITERS
    assert ledger.balance(population) == (0, 10 * WRITERS)


def test_transactions_over_several_releases_do_not_deadlock(ledger: Ledger) -> None:
    """Each goes through the releases in an order of its own; the account comes first for all."""
    population = ledger.open_account(1000)
    releases = [ledger.reserve(population, 10) for _ in range(4)]
    for release in releases:
        ledger.claim(release)

    def renew_all(seed: int) -> bool:
        rng = random.Random(seed)
        for _ in range(5):
            with ledger.app.begin() as connection:
                for release in rng.sample(releases, len(releases)):
                    assert heartbeat(connection, release, epoch=1, lease_seconds=LONG_LEASE)
        return True

    answers = at_once(*(partial(renew_all, seed) for seed in range(WRITERS)))
    assert answers == [True] * WRITERS


def test_chain_is_verified_while_jobs_go_on(ledger: Ledger) -> None:
    population = ledger.open_account(100 * WRITERS)
    releases = [ledger.reserve(population, 100) for _ in range(WRITERS - 1)]

    def work(release: UUID) -> bool:
        epoch = ledger.claim(release)
        for sequence in range(10):
            ledger.commit(release, epoch, charge(sequence, 7))
        return ledger.finish(release, epoch) == 30

    def verify() -> bool:
        return all(verify_chain(ledger.app, population).ok for _ in range(10))

    answers = at_once(verify, *(partial(work, release) for release in releases))
    assert answers == [True] * WRITERS


def test_barrage_of_mixed_writers_neither_deadlocks_nor_loses_count(ledger: Ledger) -> None:
    populations = [ledger.open_account(2000) for _ in range(2)]
    releases = [ledger.reserve(population, 100) for population in populations * 3]

    def barrage(seed: int) -> Counter[str]:
        rng, seen = random.Random(seed), Counter[str]()
        for _ in range(60):
            action = random_action(ledger, rng, populations, releases)
            try:
                action()
                seen["accepted"] += 1
            except LedgerError as refusal:
                seen[type(refusal).__name__] += 1
        return seen

    answers = at_once(*(partial(barrage, seed) for seed in range(WRITERS)))
    total = Counter[str]()
    for answer in answers:
        assert isinstance(answer, Counter), answer  # a deadlock would be another error
        total += answer
    assert total["accepted"] > WRITERS
    assert total.total() == WRITERS * 60
    with ledger.owner.connect() as connection:
        assert not connection.scalar(
            text("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        )


def random_action(
    ledger: Ledger, rng: random.Random, populations: list[UUID], releases: list[UUID]
) -> Callable[[], object]:
    release, population = rng.choice(releases), rng.choice(populations)
    epoch, sequence = rng.randint(1, 3), rng.randint(0, 4)
    actions: list[Callable[[], object]] = [
        lambda: ledger.reserve(population, rng.randint(1, 50)),
        lambda: ledger.set_cap(population, rng.randint(1500, 2500)),
        lambda: ledger.claim(release),
        lambda: ledger.heartbeat(release, epoch),
        lambda: ledger.commit(release, epoch, charge(sequence, rng.randint(0, 20))),
        lambda: ledger.expire_lease(release),
        lambda: ledger.finish(release, epoch) if rng.random() < 0.1 else None,
        lambda: ledger.close_unclaimed(release) if rng.random() < 0.1 else None,
    ]
    return rng.choice(actions)
