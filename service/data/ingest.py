"""How a worker claims a dataset, renews its lease and records the result.

A lease with a rising epoch keeps two workers from ingesting the same dataset: a worker that has
lost the lease finds out at its next write, and must discard its work.
"""

from collections.abc import Sequence
from typing import Literal
from uuid import UUID

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from service.data.models import DatasetRow

_CLAIM = text("""
    UPDATE dataset
    SET lease_epoch = lease_epoch + 1,
        lease_until = clock_timestamp() + make_interval(secs => :seconds)
    WHERE id = :id AND state = 'ingesting'
        AND (lease_until IS NULL OR lease_until <= clock_timestamp())
    RETURNING lease_epoch
""")
_RENEW = text("""
    UPDATE dataset SET lease_until = clock_timestamp() + make_interval(secs => :seconds)
    WHERE id = :id AND state = 'ingesting' AND lease_epoch = :epoch
""")
_SETTLE = text("""
    UPDATE dataset SET state = :state, reason = :reason, lease_until = NULL
    WHERE id = :id AND state = 'ingesting' AND lease_epoch = :epoch
""")
_WAITING_DATASETS = text("""
    SELECT id FROM dataset
    WHERE state = 'ingesting' AND lease_until IS NULL
        AND (resume_at IS NULL OR resume_at <= clock_timestamp())
    ORDER BY created_at LIMIT :limit
""")


def claim(session: Session, dataset_id: UUID, *, lease_seconds: float) -> int | None:
    """Take the lease; returns its epoch, or None if there is nothing to do or another worker has it."""
    epoch: int | None = session.scalar(_CLAIM, {"id": dataset_id, "seconds": lease_seconds})
    return epoch


def renew(session: Session, dataset_id: UUID, *, epoch: int, lease_seconds: float) -> bool:
    """Renew the lease. False: stop, it was taken over or the dataset was deleted."""
    parameters = {"id": dataset_id, "epoch": epoch, "seconds": lease_seconds}
    return bool(session.connection().execute(_RENEW, parameters).rowcount)


def settle(
    session: Session,
    dataset_id: UUID,
    *,
    epoch: int,
    state: Literal["ready", "rejected"],
    reason: str | None = None,
) -> bool:
    """Record the result. `reason` is about the file's structure and never repeats a value of it.

    False: the lease was taken over or the dataset was deleted; remove what was written.
    """
    parameters = {"id": dataset_id, "epoch": epoch, "state": state, "reason": reason}
    return bool(session.connection().execute(_SETTLE, parameters).rowcount)


def waiting(session: Session, *, limit: int) -> list[UUID]:
    """Datasets that wait for a worker, oldest first; the reaper sends their messages again."""
    return list(session.scalars(_WAITING_DATASETS, {"limit": limit}))


def lock_lost(session: Session, *, limit: int) -> Sequence[DatasetRow]:
    """Return the datasets whose worker died, oldest first, locked against changes."""
    statement = select(DatasetRow).where(
        DatasetRow.state == "ingesting", DatasetRow.lease_until <= func.clock_timestamp()
    )
    oldest = statement.order_by(DatasetRow.created_at).limit(limit)
    return session.scalars(oldest.with_for_update(skip_locked=True)).all()
