"""Objects that killed processes left in the storage: no row of the database refers to them.

An object is written before the row that names it, so every object is without a row for a moment.
Only an old object without a row is a leftover. None of these names is ever used again, so a
leftover cannot come into use while it is deleted.

Artifacts are left alone: they are named by their content, so a resumed job may be writing the same
object that an earlier attempt left behind.
"""

import re
from datetime import UTC, datetime, timedelta
from uuid import UUID

from sqlalchemy import text

from service.data.context import Context
from service.data.datasets import DATASETS
from service.data.storage import DRAFTS, PROBES

_DATASETS = text("SELECT id, state, lease_epoch FROM dataset")
_UPLOADS = text("SELECT object_key FROM upload")
# The keys that uploads and attempts to ingest write to; an attempt is named by its epoch.
_UPLOAD_KEY = re.compile(rf"{DATASETS}/([0-9a-f-]{{36}})/uploads/[0-9a-f]+")
_TABLE_KEY = re.compile(rf"{DATASETS}/([0-9a-f-]{{36}})/tables/(\d+)/.+")


def delete_leftovers(context: Context, *, older_than: float) -> int:
    """Delete leftover objects that are older than the given age in seconds; return their number."""
    # A restored database does not list all objects in use.
    context.check_anchor()
    storage, before = context.storage, datetime.now(UTC) - timedelta(seconds=older_than)
    deleted = storage.delete_unfinished(before=before)
    for key in (*_old_keys(context, before, DRAFTS, PROBES), *_dead_keys(context, before)):
        storage.delete(key)
        deleted += 1
    return deleted


def _old_keys(context: Context, before: datetime, *prefixes: str) -> list[str]:
    return [
        found.key
        for prefix in prefixes
        for found in context.storage.objects(prefix)
        if found.written_at < before
    ]


def _dead_keys(context: Context, before: datetime) -> list[str]:
    """Old objects of datasets that are neither a recorded upload nor part of the current rows."""
    old = _old_keys(context, before, DATASETS)
    # Read after the listing: an object that came into use meanwhile has its row by now.
    with context.transaction() as work:
        datasets = {row.id: row for row in work.session.execute(_DATASETS)}
        uploads = set(work.session.scalars(_UPLOADS))

    def is_dead(key: str) -> bool:
        # Rows of datasets are never deleted, so objects of an unknown dataset are not ours.
        if found := _UPLOAD_KEY.fullmatch(key):
            return UUID(found[1]) in datasets and key not in uploads
        if found := _TABLE_KEY.fullmatch(key):
            dataset = datasets.get(UUID(found[1]))
            return dataset is not None and (
                dataset.state in {"rejected", "deleted"} or int(found[2]) < dataset.lease_epoch
            )
        return False

    return [key for key in old if is_dead(key)]
