"""A lease lasts while its holder renews it, and the holder detects its loss."""

import threading
import uuid
from collections.abc import Callable
from datetime import datetime
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from service.data import ingest
from service.data.ledger import repository as ledger
from service.data.ledger.errors import LeaseHeld
from tests.worker.support import Stack, await_that
from worker.errors import LeaseLost
from worker.lease import DatasetLease, DryRunLease, ReleaseLease, Ticker, kept

SHORT = 0.3


def raises_lease_lost(check: Callable[[], None]) -> bool:
    try:
        check()
    except LeaseLost:
        return True
    return False


def test_release_lease_outlives_its_time_and_ends_with_its_holder(
    stack: Stack, dataset: UUID
) -> None:
    release = stack.submit(dataset)
    engine, log = stack.context.engine, stack.context.log
    with stack.context.transaction() as work:
        lease = ReleaseLease.claim(work.session, release, engine=engine, seconds=SHORT)

    def lease_end() -> datetime:
        end = stack.reservation(release).lease_until
        assert end is not None
        return end

    with kept(lease.renew, seconds=SHORT, log=log) as check:
        first = lease_end()
        await_that(lambda: lease_end() > first, "a heartbeat")
        check()
        with pytest.raises(LeaseHeld), engine.begin() as connection:
            ledger.claim(connection, release, holder="other", lease_seconds=1)

    def take_over() -> bool:
        try:
            with stack.context.transaction() as work:
                ReleaseLease.claim(work.session, release, engine=engine, seconds=60)
        except LeaseHeld:
            return False
        return True

    await_that(take_over, "the end of a lease that nobody renews")
    with kept(lease.renew, seconds=SHORT, log=log) as check:
        await_that(lambda: raises_lease_lost(check), "news of the takeover")
    with stack.context.transaction() as work, pytest.raises(LeaseLost):
        lease.require(work.session)
    with pytest.raises(LeaseLost), stack.context.transaction() as work:
        lease.end(work.session)


def test_dataset_lease_ends_with_its_dataset(stack: Stack) -> None:
    dataset = stack.uploaded()
    with stack.context.transaction() as work:
        epoch = ingest.claim(work.session, dataset, lease_seconds=60)
        assert epoch is not None
        assert ingest.claim(work.session, dataset, lease_seconds=60) is None
    lease = DatasetLease(stack.context.engine, dataset, epoch, SHORT)
    with kept(lease.renew, seconds=SHORT, log=stack.context.log) as check:
        check()
        assert stack.http.delete(f"/v1/datasets/{dataset}").status_code == 204
        await_that(lambda: raises_lease_lost(check), "news of the deletion")


def test_dry_runs_exclude_each_other_while_they_are_connected(stack: Stack) -> None:
    engine, release = stack.context.engine, uuid.uuid4()

    def is_held() -> bool:
        with stack.context.transaction() as work:
            return DryRunLease.is_held(work.session, release)

    assert not is_held()
    with DryRunLease.claimed(engine, release) as first:
        assert first is not None and first.renew() and is_held()
        with DryRunLease.claimed(engine, release) as second:
            assert second is None
        pid = first.connection.scalar(text("SELECT pg_backend_pid()"))
        assert stack.scalar("SELECT pg_terminate_backend(:pid)", pid=pid)
        await_that(lambda: not is_held(), "the end of the lock")
        assert not first.renew()
    with DryRunLease.claimed(engine, release) as third:
        assert third is not None
    await_that(lambda: not is_held(), "the end of the lock")


def test_outages_are_waited_out(stack: Stack) -> None:
    calls, enough = 0, threading.Event()

    def beat() -> bool:
        nonlocal calls
        calls += 1
        if calls < 3:
            raise OperationalError("SELECT", {}, Exception("secret text"))
        enough.set()
        return False

    with Ticker(beat, seconds=0.01, log=stack.context.log) as ticker:
        assert enough.wait(30)
        await_that(lambda: ticker.has_ended, "the end of the beat")
    assert "secret text" not in stack.log.getvalue()
