"""Carry out a release: claim it, run it from its journal, store its files, and record how it ended.

The ledger is the source of truth. A lost lease ends an attempt without any record, an outage leaves
the job to be resumed, and everything else ends it in one transaction that its epoch fences.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC
from typing import Any, Literal
from uuid import UUID

import torch
from sqlalchemy.orm import Session
from structlog.typing import FilteringBoundLogger

from scrim.spec.errors import PublicDataTooFar, SpecError
from service.data import progress, releases
from service.data.context import Context
from service.data.crypto import Unreadable
from service.data.ledger.errors import Closed, LeaseHeld
from service.data.logging import trace_of
from service.data.progress import FINAL_STATES
from synth.journal import Journal, JournalMismatch, MemoryJournal
from synth.run import FinishedRelease, JobProgress, run
from worker import certificate, report
from worker.artifacts import CERTIFICATE, HTML, JSON, REPORT, Written, store, write_artifacts
from worker.attempts import count_attempts
from worker.crash import crash_at
from worker.departure import leave
from worker.errors import OUTAGES, RESUMED, STOPPED, Cancelled, LeaseLost, OutOfMemory
from worker.finished_warnings import warnings_of
from worker.jobs import ReleaseJob, load_job
from worker.journal import LedgerJournal
from worker.lease import DryRunLease, Lease, ReleaseLease, kept
from worker.memory import is_out_of_memory, limited_memory
from worker.pretrained import StoredCache
from worker.problems import problem
from worker.reporting import Reporter

FinalState = Literal["succeeded", "failed", "cancelled"]


@dataclass(frozen=True)
class _Attempt:
    """One worker's attempt at a release."""

    context: Context
    release_id: UUID
    lease: Lease
    journal: Journal
    log: FilteringBoundLogger


@dataclass(frozen=True)
class _Ending:
    """How a job ends."""

    state: FinalState
    error: dict[str, Any] | None = None
    quality: dict[str, Any] | None = None
    warnings: Sequence[dict[str, str]] = ()
    artifacts: dict[str, Written] | None = None
    progress: JobProgress | None = None


def run_release(context: Context, release_id: UUID) -> bool:
    """Carry out a release. False: nothing to do, because another worker has it or it is over."""
    log = context.log.bind(release_id=str(release_id))
    try:
        # First: a database that is older than its anchor would spend the same budget again.
        context.check_anchor()
        with _claimed(context, release_id, log) as attempt:
            if attempt is None:
                return False
            _try(attempt)
    except LeaseLost:
        log.info("release_lease_lost")
    except RESUMED as error:
        cause = error.__cause__ or error
        log.warning("release_abandoned", error_type=type(cause).__name__, trace=trace_of(error))
    return True


@contextmanager
def _claimed(
    context: Context, release_id: UUID, log: FilteringBoundLogger
) -> Iterator[_Attempt | None]:
    """The claimed attempt, or None if there is nothing to do."""
    with context.transaction() as work:
        is_dry_run = releases.get(work.session, release_id).dry_run
    if not is_dry_run:
        yield _claim_reserved(context, release_id, log)
        return
    with DryRunLease.claimed(context.engine, release_id) as lease:
        if lease is None or not _started(context, release_id, lambda _session: lease):
            yield None
        else:
            yield _Attempt(context, release_id, lease, MemoryJournal(), log)


def _claim_reserved(
    context: Context, release_id: UUID, log: FilteringBoundLogger
) -> _Attempt | None:
    claimed: list[ReleaseLease] = []

    def claim(session: Session) -> Lease:
        seconds = context.settings.lease_seconds
        lease = ReleaseLease.claim(session, release_id, engine=context.engine, seconds=seconds)
        claimed.append(lease)
        return lease

    try:
        if not _started(context, release_id, claim):
            return None
    except (LeaseHeld, Closed):
        return None
    (lease,) = claimed
    journal = LedgerJournal(context.engine, release_id, epoch=lease.epoch)
    return _Attempt(context, release_id, lease, journal, log)


def _started(context: Context, release_id: UUID, claim: Callable[[Session], Lease]) -> bool:
    """Claim a release and record that it runs, in one transaction; or close it if it is over."""
    with context.transaction() as work:
        session = work.session
        lease = claim(session)
        is_resumed = releases.get(session, release_id).state == "running"
        release = progress.start(session, release_id)
        if release is None:
            lease.end(session)
            progress.finish(session, release_id, "cancelled")
            return False
        if is_resumed:
            attempt = count_attempts(session, release_id) + 1
            again = {"state": "running", "attempt": attempt}
            releases.add_event(session, release, "state", again)
    return True


def _try(attempt: _Attempt) -> None:
    """Carry the release out, or leave it to the next attempt."""
    try:
        _carry_out(attempt)
    except STOPPED as error:
        leave(attempt.context, attempt.release_id, attempt.lease, cause=error)
        raise


def _carry_out(attempt: _Attempt) -> None:
    log = attempt.log
    log.info("release_started")
    with kept(
        attempt.lease.renew, seconds=attempt.context.settings.lease_seconds, log=log
    ) as check:
        try:
            with limited_memory(attempt.context.settings.worker_memory_bytes):
                ending = _compute(attempt, check)
        except Cancelled:
            ending = _Ending("cancelled")
        except PublicDataTooFar as error:
            # The message contains a noisy value, so anchor before anyone can see it.
            attempt.context.advance_anchor()
            ending = _Ending("failed", error=problem("public-data-too-far", str(error)))
        except SpecError as error:
            ending = _Ending("failed", error=problem("cannot-work", str(error)))
        except JournalMismatch as error:
            ending = _Ending("failed", error=_cannot_resume(error, log))
        except Unreadable as error:
            ending = _Ending("failed", error=_damaged(error, log))
        except Exception as error:
            if isinstance(error, STOPPED):
                raise
            if is_out_of_memory(error):
                raise OutOfMemory from error
            ending = _Ending("failed", error=_internal(error, log))
        state = _end(attempt, ending)
    log.info("release_finished", state=state)
    _anchor_the_end(attempt)


def _compute(attempt: _Attempt, check: Callable[[], None]) -> _Ending:
    """Run the mechanism and store its results."""
    context = attempt.context
    job = load_job(context, attempt.release_id)
    reporter = Reporter(context, attempt.release_id, attempt.lease, check)
    with reporter.ticking():
        release = _run_where_it_fits(attempt, job, reporter)
        reporter.check()
        # Anchor the spending before anyone can see the results.
        context.advance_anchor()
        crash_at("before-artifacts")
        artifacts = write_artifacts(
            context.storage,
            release,
            job.spec.outputs.formats,
            folder=context.settings.data_dir,
        )
        page = report.render(release, _about(context, job, artifacts))
        artifacts[REPORT] = store(context.storage, [page], HTML)
        entries = certificate.ledger_entries(context.engine, job.population_id, job.release_id)
        signed = certificate.sign(
            certificate.complete(release.certificate, job, entries=entries, artifacts=artifacts),
            context.signing_key,
        )
        artifacts[CERTIFICATE] = store(context.storage, [signed], JSON)
        reporter.check()
    crash_at("after-artifacts-before-finish")
    return _Ending(
        "succeeded",
        quality=release.certificate["quality"],
        warnings=warnings_of(job, release.model),
        artifacts=artifacts,
        progress=reporter.newest,
    )


def _run_where_it_fits(attempt: _Attempt, job: ReleaseJob, reporter: Reporter) -> FinishedRelease:
    """Run the mechanism on the device of the settings, or on the CPU if that has too little memory."""
    try:
        return _run(attempt, job, reporter, device=attempt.context.settings.device)
    except torch.OutOfMemoryError:
        attempt.log.warning("device_too_small")
    return _run(attempt, job, reporter, device="cpu")


def _run(attempt: _Attempt, job: ReleaseJob, reporter: Reporter, *, device: str) -> FinishedRelease:
    """Run the mechanism from the journal: nothing that is in it is charged again."""
    return run(
        job.spec,
        job.open_table(),
        attempt.journal,
        reporter,
        protection=job.subject.protection,
        delta=job.delta,
        units=job.units,
        public=job.open_public(),
        seed=job.seed,
        device=device,
        threads=attempt.context.settings.job_threads,
        cache=StoredCache(attempt.context.storage),
        check=reporter.check,
        columns=job.columns,
    )


def _about(context: Context, job: ReleaseJob, artifacts: Mapping[str, Written]) -> report.About:
    """What the report shows about the release besides its results."""
    return report.About(
        release_id=str(job.release_id),
        dataset=job.dataset_name,
        population=job.population_name,
        asked_on=job.asked_at.astimezone(UTC).date(),
        spec=job.spec,
        declared=job.subject.schema,
        choice=job.choice,
        protection=job.subject.protection,
        delta=job.delta,
        files=[
            report.ReleasedFile(name, written.stored.size, written.stored.sha256)
            for name, written in artifacts.items()
        ],
        balance=None
        if job.is_dry_run
        else report.balance_before(context.engine, job.population_id, job.release_id),
        provenance=None if job.public is None else job.public.provenance,
        is_dry_run=job.is_dry_run,
    )


def _end(attempt: _Attempt, ending: _Ending) -> FinalState:
    """Record how the job ended and return its unspent budget, atomically.

    Locks the ledger first, then the release, as all code does. A request to cancel that arrived
    before this transaction is honoured.
    """
    release_id = attempt.release_id
    with attempt.context.transaction() as work:
        session = work.session
        attempt.lease.end(session)
        release = releases.lock(session, release_id)
        if release.state in FINAL_STATES:
            raise LeaseLost
        state: FinalState = "cancelled" if release.cancel_requested else ending.state
        if state == "succeeded":
            _record(session, release_id, ending)
        progress.finish(
            session,
            release_id,
            state,
            error=ending.error if state == "failed" else None,
            quality=ending.quality if state == "succeeded" else None,
            warnings=ending.warnings if state == "succeeded" else (),
        )
    return state


def _record(session: Session, release_id: UUID, ending: _Ending) -> None:
    if ending.progress is not None:
        last = ending.progress
        progress.report(
            session, release_id, done=last.done, total=last.total, spent_units=last.spent
        )
    for name, written in (ending.artifacts or {}).items():
        progress.add_artifact(
            session, release_id, name, stored=written.stored, media_type=written.media_type
        )


def _anchor_the_end(attempt: _Attempt) -> None:
    """Anchor the closing as well. If that fails, the next anchor covers it: nothing depends on it."""
    try:
        attempt.context.advance_anchor()
    except OUTAGES as error:
        attempt.log.warning("anchor_failed", error_type=type(error).__name__)


def _cannot_resume(error: JournalMismatch, log: FilteringBoundLogger) -> dict[str, Any]:
    """The problem of a replay that differs from the journal: other software or another machine."""
    log.error("release_failed", error_type=type(error).__name__, trace=trace_of(error))
    return problem(
        "cannot-resume",
        "this release was interrupted, and the worker that resumed it computed other queries or "
        "other rows than its journal holds; what it spent stays spent, the rest was returned",
    )


def _damaged(error: Unreadable, log: FilteringBoundLogger) -> dict[str, Any]:
    """The stored rows do not decrypt, or some of them are missing."""
    log.error("dataset_damaged", error_type=type(error).__name__, trace=trace_of(error))
    return problem(
        "dataset-damaged",
        "the stored rows of a dataset are damaged or missing; what this release spent stays spent, "
        "the rest was returned. Restore the objects from a backup, or upload the rows again as a "
        "new dataset",
    )


def _internal(error: Exception, log: FilteringBoundLogger) -> dict[str, Any]:
    """Log where an error came from, and return a problem that refers to the log."""
    reference = uuid.uuid4().hex
    log.error(
        "release_failed",
        request_id=reference,
        error_type=type(error).__name__,
        trace=trace_of(error),
    )
    return problem("internal", f"internal error; quote {reference} when you ask for help")
