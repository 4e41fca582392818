"""Progress reports of a worker about a release.

Within a transaction, write to the ledger first and then call these: all code locks in that order.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import func
from sqlalchemy.orm import Session

from scrim.spec.budget import rho_of_units
from service.data import releases
from service.data.models import ArtifactRow, ReleaseRow
from service.data.storage import StoredContent

FINAL_STATES = frozenset({"succeeded", "failed", "cancelled"})


def start(session: Session, release_id: UUID) -> ReleaseRow | None:
    """Record that a job is running, again or for the first time. None: it has ended or is to be cancelled."""
    release = releases.lock(session, release_id)
    if release.state in FINAL_STATES or release.cancel_requested:
        return None
    release.lost_attempts += 1  # subtracted again by a worker that stops in an orderly way
    # By the database's clock: turns are compared across workers.
    release.turn_at = func.clock_timestamp()
    if release.state == "queued":
        release.started_at = datetime.now(UTC)
        change_state(session, release, "running")
    return release


def report(session: Session, release_id: UUID, *, done: int, total: int, spent_units: int) -> bool:
    """Record a job's progress. False: stop, it has ended or is to be cancelled."""
    release = releases.lock(session, release_id)
    if release.state in FINAL_STATES:
        return False
    release.progress_done, release.progress_total = done, total
    payload = {"done": done, "total": total, "rho_spent": rho_of_units(spent_units)}
    releases.add_event(session, release, "progress", payload)
    return not release.cancel_requested


def add_artifact(
    session: Session, release_id: UUID, name: str, *, stored: StoredContent, media_type: str
) -> None:
    """Record a released file; a resumed job replaces its earlier record."""
    session.merge(
        ArtifactRow(
            release_id=release_id,
            name=name,
            object_key=stored.key,
            media_type=media_type,
            size=stored.size,
            sha256=bytes.fromhex(stored.sha256),
        )
    )
    session.flush()


def finish(
    session: Session,
    release_id: UUID,
    state: Literal["succeeded", "failed", "cancelled"],
    *,
    error: dict[str, Any] | None = None,
    quality: dict[str, Any] | None = None,
    warnings: Sequence[dict[str, str]] = (),
) -> bool:
    """Record how a job ended, once. `error` is public: it never contains a value of a row.

    `warnings` are added to those of the preview.
    """
    release = releases.lock(session, release_id)
    if release.state in FINAL_STATES:
        return False
    release.error, release.quality = error, quality
    release.warnings = [*release.warnings, *warnings]
    change_state(session, release, state)
    return True


def change_state(session: Session, release: ReleaseRow, state: str) -> None:
    """Move a locked release to another state, and add the event."""
    release.state = state
    if state in FINAL_STATES:
        release.finished_at = datetime.now(UTC)
    session.flush()
    releases.add_event(session, release, "state", {"state": state})
