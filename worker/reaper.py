"""`python -m worker.reaper`: finds jobs without a worker, and resumes or ends them.

It resends messages that were lost or whose worker died, ends releases that were cancelled or have
lost too many workers, closes reservations of releases that are over, deletes uploads that an ingest
left behind and, less often, other leftovers of killed processes in the storage. All decisions are
made in the database, so several reapers may run at once.
"""

import math
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field
from sqlalchemy import Row, text
from sqlalchemy.orm import Session

from service.data import ingest, progress
from service.data.config import Settings
from service.data.context import Context, open_context
from service.data.ledger import repository as ledger
from service.data.ledger.errors import LeaseHeld
from service.data.logging import build_logger, trace_of
from service.data.task_queue import INGEST, JOBS, RUN, UPLOADS
from worker import logs
from worker.departure import postpone
from worker.lease import DryRunLease
from worker.leftovers import delete_leftovers
from worker.problems import gave_up
from worker.uploads import delete_uploads

AT_ONCE = 500
"""Most jobs that one step of a sweep handles; the next sweep handles the others."""
LEFTOVERS_EVERY_SECONDS = 3600.0
"""How often the storage is searched for leftovers: listing it takes a while."""
DAY_SECONDS = 86400.0

_WAITING_RELEASES = text("""
    SELECT r.id, r.dry_run, r.cancel_requested, r.lost_attempts,
        r.state = 'running' AND r.rang_at <= r.turn_at AS is_interrupted
    FROM release AS r LEFT JOIN ledger.reservation AS v ON v.release_id = r.id
    WHERE r.state IN ('queued', 'running')
        AND (r.resume_at IS NULL OR r.resume_at <= clock_timestamp() OR r.cancel_requested)
        AND (r.dry_run OR v.state = 'open'
             AND (v.lease_until IS NULL OR v.lease_until <= clock_timestamp()))
    ORDER BY is_interrupted DESC, r.rang_at NULLS FIRST LIMIT :limit
""")
_RESEND = text("""
    UPDATE release SET rang_at = clock_timestamp()
    WHERE id = :id AND state IN ('queued', 'running')
        AND (rang_at IS NULL OR rang_at <= clock_timestamp() - make_interval(secs => :seconds))
""")
_OVER_BUT_OPEN = text("""
    SELECT v.release_id
    FROM ledger.reservation AS v JOIN release AS r ON r.id = v.release_id
    WHERE v.state = 'open' AND r.state NOT IN ('queued', 'running')
        AND (v.lease_until IS NULL OR v.lease_until <= clock_timestamp())
    LIMIT :limit
""")
_SETTLED_WITH_UPLOADS = text("""
    SELECT DISTINCT u.dataset_id FROM upload AS u JOIN dataset AS d ON d.id = u.dataset_id
    WHERE d.state IN ('ready', 'rejected') LIMIT :limit
""")


class ReaperSettings(Settings):
    """The reaper's intervals and limits."""

    reaper_seconds: Annotated[float, Field(gt=0)] = 5.0
    """Interval between two sweeps."""
    resend_seconds: Annotated[float, Field(gt=0)] = 30.0
    """How long to wait for a worker before a message is sent again."""
    max_attempts: Annotated[int, Field(ge=1)] = 10
    """Number of workers that a release may lose before it fails. Outages do not count."""
    leftover_seconds: Annotated[float, Field(gt=0)] = DAY_SECONDS
    """Age after which an object that no row refers to counts as a leftover."""


class Reaper:
    """Sweeps repeatedly; it keeps only the times of its last messages and searches."""

    def __init__(
        self,
        context: Context,
        *,
        resend_seconds: float,
        max_attempts: int,
        leftover_seconds: float = DAY_SECONDS,
    ) -> None:
        self._context = context
        self._resend_seconds = resend_seconds
        self._max_attempts = max_attempts
        self._leftover_seconds = leftover_seconds
        self._sent_at: dict[UUID, float] = {}
        self._searched_at = -math.inf

    def sweep(self) -> None:
        """Run all steps once. A failure is logged, and retried at the next sweep."""
        for step in (
            self._postpone_lost_ingests,
            self._rescue,
            self._close_reservations,
            self._delete_uploads,
            self._delete_leftovers,
        ):
            try:
                step()
            except Exception as error:
                self._context.log.warning(
                    "reaper_failed", error_type=type(error).__name__, trace=trace_of(error)
                )

    def _postpone_lost_ingests(self) -> None:
        """Schedule the next attempt at datasets whose worker died."""
        with self._context.transaction() as work:
            for dataset in ingest.lock_lost(work.session, limit=AT_ONCE):
                postpone(dataset, self._context.settings)

    def _rescue(self) -> None:
        with self._context.transaction() as work:
            found = work.session.execute(_WAITING_RELEASES, {"limit": AT_ONCE}).all()
            releases = [
                row
                for row in found
                if not (row.dry_run and DryRunLease.is_held(work.session, row.id))
            ]
            datasets = ingest.waiting(work.session, limit=AT_ONCE)
        releases = [row for row in releases if not self._end_release(row)]
        # Workers do not resume a release before its message was sent. For other releases: if each has a
        # message in its queue, the workers are busy and no message was lost. An extra message does no
        # harm, but messages must not accumulate.
        task_queue = self._context.task_queue
        interrupted = [row for row in releases if row.is_interrupted]
        others = [row for row in releases if not row.is_interrupted]
        missing = max(0, len(others) - task_queue.depth(JOBS))
        for row in (*interrupted, *others[:missing]):
            self._send_for_release(row.id)
        if task_queue.depth(UPLOADS) < len(datasets):
            for dataset_id in datasets:
                self._send_for_dataset(dataset_id)

    def _end_release(self, row: Row[Any]) -> bool:
        """End a release that was cancelled or tried too often; False if it should continue."""
        if not row.cancel_requested and row.lost_attempts < self._max_attempts:
            return False
        try:
            with self._context.transaction() as work:
                if not row.dry_run:
                    ledger.close_unclaimed(work.session, row.id)
                state = self._finish(work.session, row)
        except LeaseHeld:
            return False
        self._context.log.info("release_ended", release_id=row.id, state=state)
        self._context.advance_anchor()
        return True

    def _finish(self, session: Session, row: Row[Any]) -> str:
        if row.cancel_requested:
            progress.finish(session, row.id, "cancelled")
            return "cancelled"
        progress.finish(session, row.id, "failed", error=gave_up(row.lost_attempts))
        return "failed"

    def _send_for_release(self, release_id: UUID) -> None:
        parameters = {"id": release_id, "seconds": self._resend_seconds}
        with self._context.transaction() as work:
            # Of several reapers, only the one that updates the time sends.
            if not work.session.connection().execute(_RESEND, parameters).rowcount:
                return
            work.after_commit(lambda: self._context.task_queue.send(RUN, str(release_id)))
        self._context.log.info("sent_again", release_id=release_id, task=RUN)

    def _send_for_dataset(self, dataset_id: UUID) -> None:
        now = time.monotonic()
        if now - self._sent_at.get(dataset_id, -self._resend_seconds) < self._resend_seconds:
            return
        self._sent_at = {
            each: at for each, at in self._sent_at.items() if now - at < self._resend_seconds
        } | {dataset_id: now}
        self._context.task_queue.send(INGEST, str(dataset_id))
        self._context.log.info("sent_again", dataset_id=dataset_id, task=INGEST)

    def _close_reservations(self) -> None:
        with self._context.transaction() as work:
            found = list(work.session.scalars(_OVER_BUT_OPEN, {"limit": AT_ONCE}))
        for release_id in found:
            try:
                with self._context.transaction() as work:
                    ledger.close_unclaimed(work.session, release_id)
            except LeaseHeld:
                continue
            self._context.log.info("reservation_closed", release_id=release_id)
        if found:
            self._context.advance_anchor()

    def _delete_uploads(self) -> None:
        with self._context.transaction() as work:
            found = list(work.session.scalars(_SETTLED_WITH_UPLOADS, {"limit": AT_ONCE}))
        for dataset_id in found:
            delete_uploads(self._context, dataset_id)

    def _delete_leftovers(self) -> None:
        now = time.monotonic()
        if now - self._searched_at < LEFTOVERS_EVERY_SECONDS:
            return
        self._searched_at = now
        if delete_leftovers(self._context, older_than=self._leftover_seconds):
            self._context.log.info("leftovers_deleted")


def watch(sweep: Callable[[], None], *, seconds: float, stopping: threading.Event) -> None:
    """Sweep at regular intervals until asked to stop."""
    while not stopping.is_set():
        sweep()
        stopping.wait(seconds)


def main() -> None:
    """Run the reaper until asked to stop."""
    stopping = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopping.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    log, settings = build_logger(), ReaperSettings()
    logs.install(log)
    with open_context(settings, log) as context:
        reaper = Reaper(
            context,
            resend_seconds=settings.resend_seconds,
            max_attempts=settings.max_attempts,
            leftover_seconds=settings.leftover_seconds,
        )
        log.info("reaper_ready")
        watch(reaper.sweep, seconds=settings.reaper_seconds, stopping=stopping)


if __name__ == "__main__":
    main()
