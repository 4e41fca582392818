"""Leaving a release or a dataset to the next attempt, so that it does not count as lost.

A start is counted in `lost_attempts` until the worker reports back, so a killed worker stays counted.
A worker that stops because of an outage subtracts its count, gives up its lease, and sets the time
of the next attempt: later after each outage. A release that runs out of memory several times ends.

A dataset has no journal to resume from, so no interruption ends its ingest. The reaper records the
departure of a worker that was killed.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

from structlog.typing import FilteringBoundLogger

from service.data import datasets, progress, releases
from service.data.config import Settings
from service.data.context import Context
from service.data.models import DatasetRow
from service.data.progress import FINAL_STATES
from worker.errors import OUTAGES, LeaseLost, OutOfMemory
from worker.lease import Lease
from worker.problems import not_enough_memory

MAX_MEMORY_FAILURES = 3
"""Attempts that may run out of memory: another worker may have more."""
LONGEST_DELAY_SECONDS = 300.0
"""Longest pause before another attempt after an outage."""
_WAITS_SECONDS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Pauses between attempts to record a departure: about 4 minutes in total."""


def leave(context: Context, release_id: UUID, lease: Lease, *, cause: Exception) -> None:
    """Record that the attempt at a release is over."""
    log = context.log.bind(release_id=str(release_id))
    _write_down(lambda: _leave(context, release_id, lease, cause), log)


def leave_dataset(context: Context, dataset_id: UUID, *, epoch: int) -> None:
    """Record that the attempt at a dataset is over."""
    log = context.log.bind(dataset_id=str(dataset_id))

    def write() -> None:
        with context.transaction() as work:
            dataset = datasets.lock(work.session, dataset_id)
            if dataset.state == "ingesting" and dataset.lease_epoch == epoch:
                postpone(dataset, context.settings)

    _write_down(write, log)


def postpone(dataset: DatasetRow, settings: Settings) -> None:
    """End the lease of a dataset whose ingest was interrupted, and set the time of the next attempt."""
    dataset.outages += 1
    dataset.lease_until = None
    dataset.resume_at = datetime.now(UTC) + _pause(settings, dataset.outages)


def _write_down(write: Callable[[], None], log: FilteringBoundLogger) -> None:
    """Write to the database; during an outage, retry for a while."""
    for seconds in (0, *_WAITS_SECONDS):
        time.sleep(seconds)
        try:
            write()
        except OUTAGES as error:
            log.warning("leave_failed", error_type=type(error).__name__)
        else:
            return


def _leave(context: Context, release_id: UUID, lease: Lease, cause: Exception) -> None:
    with context.transaction() as work:
        session = work.session
        is_ours = not isinstance(cause, LeaseLost) and lease.let_go(session)
        release = releases.lock(session, release_id)
        release.lost_attempts = max(0, release.lost_attempts - 1)
        if not is_ours or release.state in FINAL_STATES:
            return
        if not isinstance(cause, OutOfMemory):
            release.outages += 1
        else:
            release.memory_failures += 1
            if release.memory_failures >= MAX_MEMORY_FAILURES:
                lease.end(session)
                error = not_enough_memory(context.settings.worker_memory_bytes)
                progress.finish(session, release_id, "failed", error=error)
                return
        failures = release.outages + release.memory_failures
        release.resume_at = datetime.now(UTC) + _pause(context.settings, failures)


def _pause(settings: Settings, failures: int) -> timedelta:
    """The pause before the next attempt: doubled after each failure, up to a limit."""
    doublings = min(30, failures - 1)
    return timedelta(seconds=min(LONGEST_DELAY_SECONDS, settings.retry_seconds * 2**doublings))
