"""Cancel releases: at once if no worker runs them, else as soon as the worker notices."""

from uuid import UUID

from sqlalchemy.orm import Session

from service.data import releases
from service.data.errors import Conflict
from service.data.ledger import repository as ledger
from service.data.ledger.errors import LeaseHeld
from service.data.progress import change_state


def cancel(session: Session, release_id: UUID) -> None:
    """Cancel a release; its unspent budget returns to the population."""
    if releases.get(session, release_id).state in {"succeeded", "failed"}:
        raise Conflict("the release has ended already; what it spent stays spent")
    _cancel(session, release_id)


def cancel_all_of(session: Session, dataset_id: UUID) -> None:
    """Cancel every unfinished release of a dataset."""
    for release_id in releases.unfinished_of(session, dataset_id):
        _cancel(session, release_id)


def _cancel(session: Session, release_id: UUID) -> None:
    is_held = not _close_reservation(session, release_id)
    release = releases.lock(session, release_id)
    if release.state not in {"queued", "running"}:
        return
    # A dry run has no lease: a running one must be asked to stop.
    if is_held or (release.dry_run and release.state == "running"):
        release.cancel_requested = True
        session.flush()
    else:
        change_state(session, release, "cancelled")


def _close_reservation(session: Session, release_id: UUID) -> bool:
    """Return the unspent rest, unless a worker holds the lease."""
    if releases.get(session, release_id).dry_run:
        return True
    try:
        # A savepoint: a refusal by the database would otherwise abort the whole transaction.
        with session.begin_nested():
            ledger.close_unclaimed(session, release_id)
    except LeaseHeld:
        return False
    return True
