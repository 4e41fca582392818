"""Deletion of raw uploads after they were read or rejected."""

from uuid import UUID

from service.data import datasets
from service.data.context import Context


def delete_uploads(context: Context, dataset_id: UUID) -> None:
    """Delete the uploads of a settled dataset: the objects, and then their records."""
    context.storage.delete_all(f"{datasets.object_prefix(dataset_id)}/uploads")
    with context.transaction() as work:
        datasets.forget_uploads(work.session, dataset_id)
