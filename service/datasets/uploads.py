"""Receive tables: encrypted on the way to storage, in constant memory, completely or not at all."""

import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID, uuid4

from fastapi.concurrency import run_in_threadpool
from sqlalchemy.orm import Session

from service.data import datasets
from service.data.context import Context
from service.data.crypto import encrypt_stream, unwrap_key, upload_purpose
from service.data.declared import TableName, tables_of
from service.data.errors import (
    Conflict,
    ContentTooLarge,
    FieldProblem,
    Invalid,
    UnsupportedMediaType,
)
from service.data.media_types import CSV, GZIP, PARQUET
from service.data.models import DatasetRow, UploadRow
from service.data.task_queue import INGEST
from service.datasets.schemas import DatasetView
from service.datasets.service import view_of
from service.keys.schemas import Caller


@dataclass(frozen=True)
class _Target:
    """Where an upload goes."""

    dataset_id: UUID
    table: TableName
    object_key: str
    data_key: bytes


class _Meter:
    """Counts and hashes what is stored."""

    def __init__(self) -> None:
        self.size = 0
        self.digest = hashlib.sha256()

    async def watch(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for piece in pieces:
            self.size += len(piece)
            self.digest.update(piece)
            yield piece


def media_type_of(content_type: str | None, content_encoding: str | None) -> str:
    """The format of an upload, or UnsupportedMediaType."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    kind = GZIP if kind == "application/x-gzip" else kind
    encoding = (content_encoding or "identity").strip().lower()
    if kind == CSV and encoding == "gzip":
        return GZIP
    if kind not in {CSV, GZIP, PARQUET} or encoding != "identity":
        raise UnsupportedMediaType(
            f"send {CSV}, plain or with Content-Encoding: gzip, or {GZIP}, or {PARQUET}"
        )
    return kind


async def receive(
    context: Context,
    dataset_id: UUID,
    pieces: AsyncIterator[bytes],
    *,
    caller: Caller,
    table: TableName | None,
    media_type: str,
) -> DatasetView:
    """Store one table of a dataset; the last one sends a message to the workers."""
    target = await run_in_threadpool(_open_target, context, dataset_id, table)
    meter = _Meter()
    limited = _limited(pieces, context.settings.max_upload_bytes)
    encrypted = encrypt_stream(target.data_key, limited, purpose=upload_purpose(target.table))
    await context.storage.put(target.object_key, meter.watch(encrypted))
    upload = UploadRow(
        dataset_id=dataset_id,
        table_name=target.table,
        object_key=target.object_key,
        media_type=media_type,
        size=meter.size,
        sha256=meter.digest.digest(),
    )
    try:
        return await run_in_threadpool(_record, context, upload, caller)
    except BaseException:
        context.storage.delete(target.object_key)
        raise


def _open_target(context: Context, dataset_id: UUID, table: TableName | None) -> _Target:
    with context.transaction() as work:
        dataset = datasets.get(work.session, dataset_id)
        wrapped = _awaiting(dataset)
        wanted = tables_of(dataset)
    if table is None and len(wanted) == 1:
        table = wanted[0]
    if table not in wanted:
        message = f"name the table: {' or '.join(wanted)}"
        raise Invalid(message, errors=[FieldProblem(loc=["query", "table"], message=message)])
    return _Target(
        dataset_id=dataset_id,
        table=table,
        # A unique name: two uploads of the same table never write to the same object.
        object_key=f"{datasets.object_prefix(dataset_id)}/uploads/{uuid4().hex}",
        data_key=unwrap_key(wrapped, dataset_id, master_key=context.settings.master_key_bytes),
    )


def _record(context: Context, upload: UploadRow, caller: Caller) -> DatasetView:
    with context.transaction() as work:
        # Locked, so that if the last two tables arrive together, one request finds the dataset complete.
        dataset = datasets.lock(work.session, upload.dataset_id)
        _awaiting(dataset)
        replaced = _replace(work.session, upload)
        if replaced is not None:
            work.after_commit(lambda: context.storage.delete(replaced))
        view = view_of(work.session, dataset, caller)
        if not view.missing_tables:
            dataset.content_hash = _content_hash(work.session, dataset)
            dataset.state = "ingesting"
            work.session.flush()
            view = view_of(work.session, dataset, caller)
            work.after_commit(lambda: context.task_queue.send(INGEST, str(dataset.id)))
    return view


def _replace(session: Session, upload: UploadRow) -> str | None:
    """Record an upload in place of an earlier one, whose object is returned."""
    earlier = session.get(UploadRow, (upload.dataset_id, upload.table_name))
    replaced = None
    if earlier is not None:
        replaced = earlier.object_key
        session.delete(earlier)
        session.flush()
    session.add(upload)
    session.flush()
    return replaced


def _content_hash(session: Session, dataset: DatasetRow) -> bytes:
    """Hash of the uploads. It covers encrypted objects, so it reveals nothing about the rows."""
    digest = hashlib.sha256(b"scrim-content-1\n")
    for upload in datasets.uploads(session, dataset.id):
        digest.update(f"{upload.table_name} {upload.media_type} {upload.sha256.hex()}\n".encode())
    return digest.digest()


def _awaiting(dataset: DatasetRow) -> bytes:
    if dataset.state != "awaiting_content" or dataset.wrapped_key is None:
        raise Conflict(
            f"the dataset is {dataset.state} and takes no content; create another dataset"
        )
    return dataset.wrapped_key


async def _limited(pieces: AsyncIterator[bytes], most: int) -> AsyncIterator[bytes]:
    size = 0
    async for piece in pieces:
        size += len(piece)
        if size > most:
            raise ContentTooLarge(f"a table may have at most {most:,} bytes; send it compressed")
        if piece:
            yield piece
    if not size:
        raise Invalid("the body is empty; send the table as the body")
