"""The ledger compared with a small model, over arbitrary histories."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from service.data.ledger.errors import (
    AlreadyCommitted,
    BudgetExhausted,
    Closed,
    LeaseHeld,
    LedgerConflict,
    LedgerError,
    OutOfOrder,
    StaleLease,
)
from service.data.ledger.records import LedgerOperation

from .support import Ledger, charge

AMOUNTS = st.integers(1, 120)


@dataclass
class Job:
    """The expected state of a reservation."""

    population: UUID
    amount: int
    journal: list[LedgerOperation] = field(default_factory=list)
    is_open: bool = True
    epoch: int = 0
    is_leased: bool = False
    is_claimed: bool = False
    """Whether a worker holds, or held, the current epoch."""

    @property
    def spent(self) -> int:
        return sum(operation.price_units for operation in self.journal)

    @property
    def rest(self) -> int:
        return self.amount - self.spent

    def close(self) -> int:
        self.is_open, self.is_leased = False, False
        return self.rest


@dataclass
class Model:
    """The expected state of the ledger."""

    caps: dict[UUID, int] = field(default_factory=dict)
    jobs: dict[UUID, Job] = field(default_factory=dict)

    def balance(self, population: UUID) -> tuple[int, int]:
        jobs = [job for job in self.jobs.values() if job.population == population]
        return sum(job.spent for job in jobs), sum(job.rest for job in jobs if job.is_open)


def outcome(action: Callable[[], Any]) -> Any:
    """The result of a call, or the type of its error."""
    try:
        return action()
    except LedgerError as refusal:
        return type(refusal)


class LedgerMachine(RuleBasedStateMachine):
    """Each rule makes the same call to the ledger and the model, and compares the results."""

    populations: Bundle[UUID] = Bundle("populations")
    releases: Bundle[UUID] = Bundle("releases")

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self.ledger, self.model = ledger, Model()

    @initialize(target=populations, caps=st.lists(st.integers(1, 300), min_size=2, max_size=2))
    def open_accounts(self, caps: list[int]) -> Any:
        opened = [self.ledger.open_account(cap) for cap in caps]
        self.model.caps = dict(zip(opened, caps, strict=True))
        return multiple(*opened)

    @rule(population=populations, cap=st.integers(1, 400))
    def set_cap(self, population: UUID, cap: int) -> None:
        fits = cap >= sum(self.model.balance(population))
        answer = outcome(lambda: self.ledger.set_cap(population, cap))
        assert answer == (None if fits else BudgetExhausted)
        if fits:
            self.model.caps[population] = cap

    @rule(target=releases, population=populations, amount=AMOUNTS)
    def reserve(self, population: UUID, amount: int) -> Any:
        release = uuid.uuid4()
        fits = sum(self.model.balance(population)) + amount <= self.model.caps[population]
        answer = outcome(lambda: self.ledger.reserve(population, amount, release))
        assert answer == (release if fits else BudgetExhausted)
        if not fits:
            return multiple()
        self.model.jobs[release] = Job(population, amount)
        return release

    @rule(release=releases, population=populations, amount=AMOUNTS)
    def reserve_again(self, release: UUID, population: UUID, amount: int) -> None:
        job = self.model.jobs[release]
        answer = outcome(lambda: self.ledger.reserve(population, amount, release))
        is_same = (population, amount) == (job.population, job.amount)
        assert answer == (release if is_same else LedgerConflict)
        assert self.ledger.reserve(job.population, job.amount, release) == release

    @rule(release=releases)
    def claim(self, release: UUID) -> None:
        job = self.model.jobs[release]
        answer = outcome(lambda: self.ledger.claim(release))
        if not job.is_open:
            assert answer == Closed
        elif job.is_leased:
            assert answer == LeaseHeld
        else:
            job.epoch, job.is_leased, job.is_claimed = job.epoch + 1, True, True
            assert answer == job.epoch

    @rule(release=releases)
    def let_time_pass(self, release: UUID) -> None:
        self.ledger.expire_lease(release)
        self.model.jobs[release].is_leased = False

    @rule(release=releases, behind=st.integers(0, 2))
    def heartbeat(self, release: UUID, behind: int) -> None:
        job = self.model.jobs[release]
        epoch = job.epoch - behind
        is_current = job.is_open and job.is_claimed and behind == 0
        assert self.ledger.heartbeat(release, epoch) == is_current
        job.is_leased = job.is_leased or is_current

    @rule(release=releases, price=st.integers(0, 40), value=st.integers(-(2**63), 2**63 - 1))
    def commit_next(self, release: UUID, price: int, value: int) -> None:
        job = self.model.jobs[release]
        self._commit(job, release, job.epoch, charge(len(job.journal), price, value))

    @rule(
        release=releases,
        behind=st.integers(-1, 1),
        sequence=st.integers(0, 4),
        price=st.integers(0, 150),
    )
    def commit_anything(self, release: UUID, behind: int, sequence: int, price: int) -> None:
        job = self.model.jobs[release]
        self._commit(job, release, job.epoch - behind, charge(sequence, price))

    def _commit(self, job: Job, release: UUID, epoch: int, operation: LedgerOperation) -> None:
        answer = outcome(lambda: self.ledger.commit(release, epoch, operation))
        if epoch != job.epoch or epoch < 1 or (job.is_open and not job.is_claimed):
            assert answer == StaleLease
        elif not job.is_open:
            assert answer == Closed
        elif operation.sequence != len(job.journal):
            is_old = operation.sequence < len(job.journal)
            assert answer == (AlreadyCommitted if is_old else OutOfOrder)
        elif operation.price_units > job.rest:
            assert answer == BudgetExhausted
        else:
            assert answer is None
            job.journal.append(operation)

    @rule(release=releases, behind=st.sampled_from([0, 0, 1]))
    def finish(self, release: UUID, behind: int) -> None:
        job = self.model.jobs[release]
        epoch = job.epoch - behind
        answer = outcome(lambda: self.ledger.finish(release, epoch))
        if behind or epoch < 1 or (job.is_open and not job.is_claimed):
            assert answer == StaleLease
        else:
            assert answer == (job.close() if job.is_open else 0)

    @rule(release=releases)
    def close_unclaimed(self, release: UUID) -> None:
        job = self.model.jobs[release]
        answer = outcome(lambda: self.ledger.close_unclaimed(release))
        if not job.is_open:
            assert answer == 0
        elif job.is_leased:
            assert answer == LeaseHeld
        else:
            job.epoch += 1
            assert answer == job.close()

    @rule(release=releases)
    def reopen(self, release: UUID) -> None:
        job = self.model.jobs[release]
        answer = outcome(lambda: self.ledger.reopen(release))
        if job.is_open:
            assert answer == LedgerConflict
        elif sum(self.model.balance(job.population)) + job.rest > self.model.caps[job.population]:
            assert answer == BudgetExhausted
        else:
            job.is_open, job.is_claimed, job.epoch = True, False, job.epoch + 1
            assert answer == job.rest

    @invariant()
    def balances_agree(self) -> None:
        for population in self.model.caps:
            assert self.ledger.balance(population) == self.model.balance(population)

    def teardown(self) -> None:
        for release, job in self.model.jobs.items():
            assert self.ledger.journal(release) == job.journal
        self.ledger.check()


def test_ledger_does_as_the_model(ledger: Ledger) -> None:
    class Machine(LedgerMachine):
        def __init__(self) -> None:
            super().__init__(ledger)

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=40,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
