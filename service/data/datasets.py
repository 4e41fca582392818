"""Rows of datasets and uploads."""

import hashlib
from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from service.data.errors import NotFound
from service.data.models import Dataset, Upload
from service.data.pagination import Paging, newest_first

DATASETS = "datasets"
"""Where the storage keeps the objects of all datasets."""


def get(session: Session, dataset_id: UUID) -> Dataset:
    """One dataset; NotFound if there is none."""
    return _found(session.get(Dataset, dataset_id))


def lock(session: Session, dataset_id: UUID) -> Dataset:
    """One dataset, which nobody else may change or use until the transaction ends."""
    statement = select(Dataset).where(Dataset.id == dataset_id).with_for_update()
    return _found(session.scalar(statement))


def hold(session: Session, dataset_id: UUID) -> Dataset:
    """One dataset, which nobody may change or delete until the transaction ends."""
    statement = select(Dataset).where(Dataset.id == dataset_id).with_for_update(read=True)
    return _found(session.scalar(statement))


def lock_all_with_keys(session: Session) -> Sequence[Dataset]:
    """Every dataset that has a data key, which nobody else may change until the transaction ends."""
    statement = select(Dataset).where(Dataset.wrapped_key.is_not(None)).order_by(Dataset.id)
    return session.scalars(statement.with_for_update()).all()


def newest_with_key(session: Session) -> Dataset | None:
    """The newest dataset that has a data key, if there is one."""
    statement = select(Dataset).where(Dataset.wrapped_key.is_not(None))
    return session.scalar(statement.order_by(Dataset.created_at.desc()).limit(1))


def pinned_hash(dataset: Dataset, public: Dataset | None) -> bytes:
    """What a reservation pins of the rows a release reads: those of both datasets, if it has two."""
    assert dataset.content_hash is not None
    if public is None:
        return dataset.content_hash
    assert public.content_hash is not None
    return hashlib.sha256(dataset.content_hash + public.content_hash).digest()


def page(session: Session, paging: Paging) -> Sequence[Dataset]:
    """A page of datasets, the newest first."""
    return session.scalars(newest_first(select(Dataset), Dataset, paging)).all()


def uploads(session: Session, dataset_id: UUID) -> Sequence[Upload]:
    """What was uploaded for a dataset, by name of the table."""
    return session.scalars(
        select(Upload).where(Upload.dataset_id == dataset_id).order_by(Upload.table_name)
    ).all()


def forget_uploads(session: Session, dataset_id: UUID) -> None:
    """Remove the records of what was uploaded."""
    session.execute(delete(Upload).where(Upload.dataset_id == dataset_id))


def object_prefix(dataset_id: UUID) -> str:
    """Where the storage keeps everything that belongs to a dataset."""
    return f"{DATASETS}/{dataset_id}"


def _found(dataset: Dataset | None) -> Dataset:
    if dataset is None:
        raise NotFound("there is no such dataset")
    return dataset
