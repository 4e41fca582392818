"""Progress reports of a running job: rounds and spent budget, at fixed intervals.

How long a round takes depends on the rows (the exact selection does), so progress is not reported
when a round ends, but by a clock that is independent of the job.
"""

import threading
from collections.abc import Callable
from uuid import UUID

from sqlalchemy.orm import Session

from service.data import progress, releases
from service.data.context import Context
from service.data.progress import FINAL_STATES
from synth.run import JobProgress
from worker.errors import Cancelled, LeaseLost
from worker.lease import Lease, Ticker

REPORT_SECONDS = 1.0
"""Interval between two reports, independent of the rounds."""


class Reporter:
    """Takes progress from the job, writes it to the database, and stops the job when asked to."""

    def __init__(
        self, context: Context, release_id: UUID, lease: Lease, check: Callable[[], None]
    ) -> None:
        self._context = context
        self._release_id = release_id
        self._lease = lease
        self._check_lease = check
        self._newest: JobProgress | None = None
        self._written: JobProgress | None = None
        self._cancelled = threading.Event()

    @property
    def newest(self) -> JobProgress | None:
        """The latest progress of the job."""
        return self._newest

    def ticking(self) -> Ticker:
        """A context in which a thread writes new progress."""
        return Ticker(self._write, seconds=REPORT_SECONDS, log=self._context.log)

    def __call__(self, progress: JobProgress) -> None:
        """Take progress from the job; raises if it must stop."""
        self._newest = progress
        self.check()

    def check(self) -> None:
        """Raise if the job must stop."""
        self._check_lease()
        if self._cancelled.is_set():
            raise Cancelled

    def _write(self) -> bool:
        """One tick; False once the job is to be cancelled or was taken over."""
        newest = self._newest
        try:
            with self._context.transaction() as work:
                self._lease.require(work.session)
                goes_on = self._report(work.session, newest)
        except LeaseLost:
            return False
        self._written = newest
        if not goes_on:
            self._cancelled.set()
        return goes_on

    def _report(self, session: Session, newest: JobProgress | None) -> bool:
        if newest is None or newest == self._written:
            release = releases.get(session, self._release_id)
            return not (release.cancel_requested or release.state in FINAL_STATES)
        return progress.report(
            session,
            self._release_id,
            done=newest.done,
            total=newest.total,
            spent_units=newest.spent,
        )
