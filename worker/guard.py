"""`python -m worker.guard`: ends jobs from another process, in any state of the job.

A job checks for requests to cancel between its steps, and one step may take minutes: a fit, a solver,
a call of a library. The guard is a separate process beside each worker, so no step can block it. The
worker's processes report which release each of them runs (lines on the guard's standard input:
`start PID RELEASE`, `end PID`). The guard records the end of the release, and then kills the process.
That is safe: a job can be killed at any moment, and the recorded end prevents further commits.
"""

import os
import select
import selectors
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import text

from service.data import progress, releases
from service.data.config import Settings
from service.data.context import Context, open_context
from service.data.ledger import repository as ledger
from service.data.ledger.errors import StaleLease
from service.data.logging import build_logger
from worker import logs
from worker.errors import OUTAGES
from worker.lease import holder
from worker.problems import time_limit

LOOK_SECONDS = 0.5
"""Interval between two looks for jobs to end."""
TERM_SECONDS = 2.0
"""Grace period in which a cancelled job may end by itself."""
_PIPE_BYTES = 2**16
"""The capacity of a pipe on Linux."""

_TO_CANCEL = text("""
    SELECT id FROM release
    WHERE id = ANY(CAST(:ids AS uuid[])) AND cancel_requested AND state = 'running'
""")


@dataclass
class GuardedJob:
    """A process and the release it works on."""

    release_id: UUID
    process: "Process"
    started: float
    cancelled_since: float | None = None


class Process:
    """A process that can be killed, identified so that a later process with the same id is safe."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._handle = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None

    def is_alive(self) -> bool:
        """Whether it is still running."""
        if self._handle is not None:
            return not select.select([self._handle], [], [], 0)[0]
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def kill(self) -> None:
        """Kill it, as a power cut would."""
        if self._handle is None:
            os.kill(self.pid, signal.SIGKILL)
        else:
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def close(self) -> None:
        """Close the handle."""
        if self._handle is not None:
            os.close(self._handle)


class JobGuard:
    """The jobs of one worker, and how they are ended."""

    def __init__(self, context: Context, *, now: Callable[[], float] = time.monotonic) -> None:
        self._context = context
        self._limit = context.settings.job_seconds
        self._now = now
        self._jobs: dict[int, GuardedJob] = {}

    def hear(self, line: str) -> None:
        """Process a line from one of the worker's processes."""
        word, pid, *release_id = line.split()
        self._forget(int(pid))
        if word == "start":
            try:
                process = Process(int(pid))
            except ProcessLookupError:
                return
            self._jobs[int(pid)] = GuardedJob(UUID(release_id[0]), process, self._now())

    def look(self) -> None:
        """End the jobs that are to be cancelled or have taken too long."""
        for pid in [pid for pid, job in self._jobs.items() if not job.process.is_alive()]:
            self._forget(pid)
        if not self._jobs:
            return
        with self._context.transaction() as work:
            ids = [job.release_id for job in self._jobs.values()]
            to_cancel = set(work.session.scalars(_TO_CANCEL, {"ids": ids}))
        for job in list(self._jobs.values()):
            now = self._now()
            if job.release_id in to_cancel and job.cancelled_since is None:
                job.cancelled_since = now
            if job.cancelled_since is not None and now - job.cancelled_since >= TERM_SECONDS:
                self._end(job, "cancelled")
            elif self._limit and now - job.started > self._limit:
                self._end(job, "failed", error=time_limit(self._limit))

    def _end(
        self,
        job: GuardedJob,
        state: Literal["cancelled", "failed"],
        *,
        error: dict[str, Any] | None = None,
    ) -> None:
        """Record the end, then kill the process: once the end is recorded, it can commit nothing."""
        if self._write_end(job, state, error):
            self._context.log.info("release_ended", release_id=str(job.release_id), state=state)
            with suppress(ProcessLookupError):
                job.process.kill()
        self._forget(job.process.pid)

    def _forget(self, pid: int) -> None:
        if job := self._jobs.pop(pid, None):
            job.process.close()

    def _write_end(
        self, job: GuardedJob, state: Literal["cancelled", "failed"], error: dict[str, Any] | None
    ) -> bool:
        """Record the end; False if the release has ended, or another worker has taken it over."""
        with self._context.transaction() as work:
            session = work.session
            if not releases.get(session, job.release_id).dry_run:
                reservation = ledger.reservation(session, job.release_id)
                if reservation.lease_holder != holder(job.process.pid):
                    return False
                try:
                    # A savepoint: a refusal would otherwise abort the whole transaction.
                    with session.begin_nested():
                        ledger.finish(session, job.release_id, epoch=reservation.lease_epoch)
                except StaleLease:
                    return False
            return progress.finish(session, job.release_id, state, error=error)


def watch(guard: JobGuard, context: Context, source: int) -> None:
    """Check at regular intervals until every process of the worker has closed its end of the pipe."""
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(source, selectors.EVENT_READ)
        while True:
            if selector.select(LOOK_SECONDS):
                piece = os.read(source, _PIPE_BYTES)
                if not piece:
                    return
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    guard.hear(line.decode())
            try:
                guard.look()
            except OUTAGES as error:
                context.log.warning("guard_failed", error_type=type(error).__name__)


def main() -> None:
    """Guard the worker that started this process."""
    # Ctrl-C reaches the worker too, which ends its jobs first.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    log = build_logger()
    logs.install(log)
    settings = Settings()
    with open_context(settings.model_copy(update={"database_connections": 1}), log) as context:
        watch(JobGuard(context), context, source=0)


if __name__ == "__main__":
    main()
