"""Rows of datasets and uploads."""

import hashlib
from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from service.data.errors import NotFound
from service.data.models import DatasetRow, UploadRow
from service.data.pagination import Paging, newest_first

DATASETS = "datasets"
"""Prefix of the objects of all datasets in the storage."""


def get(session: Session, dataset_id: UUID) -> DatasetRow:
    """One dataset; NotFound if there is none."""
    return _found(session.get(DatasetRow, dataset_id))


def lock(session: Session, dataset_id: UUID) -> DatasetRow:
    """Return one dataset, locked against changes and use until the transaction ends."""
    statement = select(DatasetRow).where(DatasetRow.id == dataset_id).with_for_update()
    return _found(session.scalar(statement))


def hold(session: Session, dataset_id: UUID) -> DatasetRow:
    """Return one dataset, locked against changes and deletion until the transaction ends."""
    statement = select(DatasetRow).where(DatasetRow.id == dataset_id).with_for_update(read=True)
    return _found(session.scalar(statement))


def lock_all_with_keys(session: Session) -> Sequence[DatasetRow]:
    """Return every dataset with a data key, locked against changes until the transaction ends."""
    statement = (
        select(DatasetRow).where(DatasetRow.wrapped_key.is_not(None)).order_by(DatasetRow.id)
    )
    return session.scalars(statement.with_for_update()).all()


def newest_with_key(session: Session) -> DatasetRow | None:
    """The newest dataset that has a data key, if there is one."""
    statement = select(DatasetRow).where(DatasetRow.wrapped_key.is_not(None))
    return session.scalar(statement.order_by(DatasetRow.created_at.desc()).limit(1))


def pinned_hash(dataset: DatasetRow, public: DatasetRow | None) -> bytes:
    """The hash of the rows that a release reads, of both datasets if it has two; the reservation keeps it."""
    assert dataset.content_hash is not None
    if public is None:
        return dataset.content_hash
    assert public.content_hash is not None
    return hashlib.sha256(dataset.content_hash + public.content_hash).digest()


def page(session: Session, paging: Paging) -> Sequence[DatasetRow]:
    """A page of datasets, the newest first."""
    return session.scalars(newest_first(select(DatasetRow), DatasetRow, paging)).all()


def uploads(session: Session, dataset_id: UUID) -> Sequence[UploadRow]:
    """The uploads of a dataset, by table name."""
    return session.scalars(
        select(UploadRow).where(UploadRow.dataset_id == dataset_id).order_by(UploadRow.table_name)
    ).all()


def forget_uploads(session: Session, dataset_id: UUID) -> None:
    """Delete the records of a dataset's uploads."""
    session.execute(delete(UploadRow).where(UploadRow.dataset_id == dataset_id))


def object_prefix(dataset_id: UUID) -> str:
    """Prefix of a dataset's objects in the storage."""
    return f"{DATASETS}/{dataset_id}"


def _found(dataset: DatasetRow | None) -> DatasetRow:
    if dataset is None:
        raise NotFound("there is no such dataset")
    return dataset
