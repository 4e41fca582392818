"""Leaving a release to the next attempt, so that it does not count as lost.

A start is counted in `lost_attempts` until the worker comes back. One that is killed never does. One
that stops because of an outage takes its count off again, gives its lease up, and sets the time of
the next attempt: later after each outage. A release that runs out of memory several times ends.
"""

import time
from datetime import UTC, datetime, timedelta
from uuid import UUID

from service.config import Settings
from service.context import Context
from service.models import ReleaseRow
from service.releases import progress, repository
from service.releases.progress import FINAL_STATES
from worker.errors import OUTAGES, LeaseLost, OutOfMemory
from worker.lease import Lease
from worker.problems import not_enough_memory

MAX_MEMORY_FAILURES = 3
LONGEST_PAUSE_SECONDS = 300.0
_WAITS_SECONDS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Between the tries to write it down: in all about 4 minutes."""


def leave(context: Context, release_id: UUID, lease: Lease, *, cause: Exception) -> None:
    """Write down that the attempt is over. An outage of the database is waited out for a while."""
    for seconds in (0, *_WAITS_SECONDS):
        time.sleep(seconds)
        try:
            _leave(context, release_id, lease, cause)
        except OUTAGES as error:
            context.log.warning(
                "leave_failed", release_id=str(release_id), error_type=type(error).__name__
            )
        else:
            return


def _leave(context: Context, release_id: UUID, lease: Lease, cause: Exception) -> None:
    with context.transaction() as work:
        session = work.session
        is_ours = not isinstance(cause, LeaseLost) and lease.let_go(session)
        release = repository.lock(session, release_id)
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
        release.resume_at = datetime.now(UTC) + _pause(context.settings, release)


def _pause(settings: Settings, release: ReleaseRow) -> timedelta:
    """Twice as long after each failure, up to a limit."""
    doublings = min(30, release.outages + release.memory_failures - 1)
    return timedelta(seconds=min(LONGEST_PAUSE_SECONDS, settings.retry_seconds * 2**doublings))
