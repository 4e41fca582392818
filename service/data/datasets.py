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
"""Where the storage keeps the objects of all datasets."""


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
    """What a reservation pins of the rows a release reads: those of both datasets, if it has two."""
    assert dataset.content_hash is not None
    if public is None:
        return dataset.content_hash
    assert public.content_hash is not None
    return hashlib.sha256(dataset.content_hash + public.content_hash).digest()


def page(session: Session, paging: Paging) -> Sequence[DatasetRow]:
    """A page of datasets, the newest first."""
    return session.scalars(newest_first(select(DatasetRow), DatasetRow, paging)).all()


def uploads(session: Session, dataset_id: UUID) -> Sequence[UploadRow]:
    """What was uploaded for a dataset, by name of the table."""
    return session.scalars(
        select(UploadRow).where(UploadRow.dataset_id == dataset_id).order_by(UploadRow.table_name)
    ).all()


def forget_uploads(session: Session, dataset_id: UUID) -> None:
    """Remove the records of what was uploaded."""
    session.execute(delete(UploadRow).where(UploadRow.dataset_id == dataset_id))


def object_prefix(dataset_id: UUID) -> str:
    """Where the storage keeps everything that belongs to a dataset."""
    return f"{DATASETS}/{dataset_id}"


def _found(dataset: DatasetRow | None) -> DatasetRow:
    if dataset is None:
        raise NotFound("there is no such dataset")
    return dataset
