"""Resume releases from their journals, if a worker or a machine caused the failure."""

from datetime import UTC, datetime
from uuid import UUID

from sqlalchemy.orm import Session

from scrim.spec.budget import rho_of_units
from service.data import datasets, releases
from service.data.errors import Conflict, DatasetNotReady
from service.data.ledger import repository as ledger
from service.data.ledger.errors import BudgetExhausted
from service.data.models import ReleaseRow
from service.data.progress import change_state
from service.data.task_queue import RUN, TaskQueue
from service.data.work import UnitOfWork

RESUMABLE = frozenset(
    f"/problems/{kind}"
    for kind in ("gave-up", "not-enough-memory", "time-limit", "internal", "cannot-resume")
)
"""Problems of workers and machines. Other problems lie in the request, and would recur."""


def resume(work: UnitOfWork, release_id: UUID, task_queue: TaskQueue) -> None:
    """Queue a failed release again. What its journal holds is not charged a second time."""
    session = work.session
    found = releases.get(session, release_id)
    _refuse_others(found)
    _require_rows(session, found)
    if not found.dry_run:
        _reopen(session, found)
    release = releases.lock(session, release_id)
    # It may have been resumed between the first read and the lock.
    _refuse_others(release)
    release.error, release.finished_at, release.cancel_requested = None, None, False
    release.lost_attempts = release.outages = release.memory_failures = 0
    release.resume_at, release.rang_at = None, datetime.now(UTC)
    change_state(session, release, "queued")
    work.after_commit(lambda: task_queue.send(RUN, str(release_id)))


def is_resumable(state: str, problem: str | None) -> bool:
    """Whether a release in this state, with this type of problem, can be resumed."""
    return state == "failed" and problem in RESUMABLE


def _refuse_others(release: ReleaseRow) -> None:
    problem = (release.error or {}).get("type")
    if not is_resumable(release.state, problem):
        names = ", ".join(sorted(RESUMABLE))
        raise Conflict(f"only a release that failed with one of {names} can be resumed")


def _require_rows(session: Session, release: ReleaseRow) -> None:
    """Require that the rows of the release still exist; a dry run reads only public rows."""
    private = None if release.dry_run else release.dataset_id
    for dataset_id in filter(None, (private, release.public_dataset_id)):
        if datasets.hold(session, dataset_id).state != "ready":
            raise DatasetNotReady("the rows of this release were deleted, so it cannot be resumed")


def _reopen(session: Session, release: ReleaseRow) -> None:
    """Reserve the unspent budget again."""
    rest = release.units - ledger.reservation(session, release.id).spent_units
    try:
        ledger.reopen(session, release.id)
    except BudgetExhausted as refusal:
        raise BudgetExhausted(
            f"to resume, this release needs the {rho_of_units(rest):g} rho that it has not spent, but "
            f"the population has less left; see /v1/populations/{release.population_id}"
        ) from refusal
