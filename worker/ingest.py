"""From an encrypted upload to encrypted chunks of typed rows, in bounded memory.

An attempt writes under its own epoch and takes effect by one fenced update. An interrupted attempt
leaves only unreadable objects, which the next one removes. A dataset is rejected only if the file
cannot be read, or because of an internal error; after an interruption it is tried again. The raw
upload is deleted at the end.
"""

import hashlib
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from scrim.spec.two_level import TwoLevelSchema
from service.data import datasets, ingest, populations
from service.data.context import Context
from service.data.crypto import Unreadable, decrypt_pieces, unwrap_key, upload_purpose
from service.data.declared import schema_of
from service.data.logging import trace_of
from service.data.media_types import PARQUET
from service.data.models import UploadRow
from synth.table import Chunk, TableError, read_csv, read_parquet
from synth.table.bytestream import stream_of
from worker.chunks import ChunkStore
from worker.crash import crash_at
from worker.departure import leave_dataset
from worker.encrypted_file import encrypted_copy
from worker.errors import RESUMED, STOPPED, LeaseLost, OutOfMemory
from worker.lease import DatasetLease, kept
from worker.linking import store_linked
from worker.memory import is_out_of_memory, limited_memory
from worker.people import keep_bounded_rows, refuse_missing
from worker.uploads import delete_uploads

PARQUET_CELLS = 2**22
"""Number of cells of a Parquet file that are decoded at a time."""
DAMAGED_UPLOAD = "the stored upload is damaged; create another dataset and upload the file again"


@dataclass(frozen=True)
class TablePlan:
    """How one table is read, and how many of its rows one owner may have."""

    name: str
    schema: Schema
    identifier: str | None = None
    max_rows: int = 1
    group_key: str | None = None
    """The column of the group that every row must name, if owners are people in groups."""


@dataclass(frozen=True)
class DatasetPlan:
    """How the tables of a dataset are read, and whether they are linked."""

    tables: list[TablePlan]
    links: TwoLevelSchema | None = None
    """The schema that links groups and individuals into another table, for two-level data."""


@dataclass(frozen=True)
class _IngestJob:
    """A claimed dataset and how to ingest it."""

    lease: DatasetLease
    chunk_store: ChunkStore
    plan: DatasetPlan
    uploads: dict[str, UploadRow]


def ingest_dataset(context: Context, dataset_id: UUID) -> None:
    """Ingest a dataset, unless it is done or another worker has it."""
    job = _claim(context, dataset_id)
    if job is None:
        return
    log = context.log.bind(dataset_id=str(dataset_id))
    log.info("ingest_started")
    try:
        with kept(job.lease.renew, seconds=job.lease.seconds, log=log) as check:
            with limited_memory(context.settings.worker_memory_bytes):
                reason = _attempt(context, job, check)
            crash_at("before-settle")
            is_settled = _settle(context, job, reason)
    except LeaseLost as stop:
        log.info("ingest_stopped", error_type=type(stop).__name__)
        job.chunk_store.remove()
        return
    except RESUMED as error:
        log.warning("ingest_abandoned", error_type=type(error).__name__, trace=trace_of(error))
        leave_dataset(context, dataset_id, epoch=job.lease.epoch)
        return
    if not is_settled or reason is not None:
        job.chunk_store.remove()
    if is_settled:
        log.info("ingest_finished", state="ready" if reason is None else "rejected")
        delete_uploads(context, dataset_id)


def plan_dataset(schema: Schema | TwoLevelSchema, protection: Protection | None) -> DatasetPlan:
    """Plan the tables of a dataset. Public data (no protection) is bounded by its own schema only."""
    if isinstance(schema, TwoLevelSchema):
        groups = TablePlan("groups", schema.table("groups"), schema.groups.key)
        return DatasetPlan([groups, _individuals_plan(schema, protection)], links=schema)
    if protection is None or protection.unit == "row":
        return DatasetPlan([TablePlan("rows", schema)])
    (owner,) = schema.owners
    return DatasetPlan([TablePlan("rows", schema, owner, protection.max_rows_per_unit)])


def _individuals_plan(schema: TwoLevelSchema, protection: Protection | None) -> TablePlan:
    """Bound the individuals of a group, or the rows of a person, by the protected unit.

    If the unit is a person, groups are truncated later, when the tables are linked: in the other
    order, a person left out of one group could make room for another person's row elsewhere.
    """
    alone, key = schema.table("individuals"), schema.individuals.group_key
    if protection is None or protection.unit != "person":
        return TablePlan("individuals", alone, key, schema.max_group_size)
    (owner,) = schema.owners
    return TablePlan("individuals", alone, owner, protection.max_rows_per_unit, group_key=key)


def _claim(context: Context, dataset_id: UUID) -> _IngestJob | None:
    settings = context.settings
    with context.transaction() as work:
        epoch = ingest.claim(work.session, dataset_id, lease_seconds=settings.lease_seconds)
        if epoch is None:
            return None
        dataset = datasets.get(work.session, dataset_id)
        uploads = {each.table_name: each for each in datasets.uploads(work.session, dataset_id)}
        protection = None
        if dataset.population_id is not None:
            protection = populations.get(work.session, dataset.population_id).protection
    assert dataset.wrapped_key is not None and dataset.content_hash is not None
    data_key = unwrap_key(dataset.wrapped_key, dataset_id, master_key=settings.master_key_bytes)
    return _IngestJob(
        lease=DatasetLease(context.engine, dataset_id, epoch, settings.lease_seconds),
        chunk_store=ChunkStore(context.storage, dataset_id, epoch, dataset.content_hash, data_key),
        plan=plan_dataset(schema_of(dataset), protection),
        uploads=uploads,
    )


def _attempt(context: Context, job: _IngestJob, check: Callable[[], None]) -> str | None:
    """Read and store every table; returns why the dataset must be rejected, if it must."""
    try:
        job.chunk_store.remove_earlier()
        counts = {plan.name: _store(context, job, plan, check) for plan in job.plan.tables}
        if job.plan.links is not None:
            counts["linked"] = store_linked(job.chunk_store, job.plan.links, counts, check)
        job.chunk_store.seal(counts)
    except TableError as error:
        return error.problem
    except Unreadable:
        return DAMAGED_UPLOAD
    except Exception as error:
        if isinstance(error, STOPPED):
            raise
        if is_out_of_memory(error):
            raise OutOfMemory from error
        reference = uuid.uuid4().hex
        context.log.error(
            "ingest_failed",
            dataset_id=str(job.chunk_store.dataset_id),
            request_id=reference,
            error_type=type(error).__name__,
            trace=trace_of(error),
        )
        return f"internal error; quote {reference} when you ask for help"
    return None


def _store(context: Context, job: _IngestJob, plan: TablePlan, check: Callable[[], None]) -> int:
    """Store the rows of one table; returns the number of chunks."""

    def watched() -> Iterator[Chunk]:
        for chunk in _read(context, job, plan):
            check()
            if plan.group_key is not None:
                refuse_missing(chunk, plan.group_key)
            yield chunk
            crash_at("during-ingest")

    if plan.identifier is None:
        return job.chunk_store.write(plan.name, watched())
    return keep_bounded_rows(
        job.chunk_store,
        plan.name,
        watched(),
        schema=plan.schema,
        identifier=plan.identifier,
        max_rows=plan.max_rows,
        group=plan.group_key,
        check=check,
    )


def _read(context: Context, job: _IngestJob, plan: TablePlan) -> Iterator[Chunk]:
    """The rows of an upload, as chunks of the declared columns."""
    upload, most = job.uploads[plan.name], context.settings.max_unpacked_bytes
    stored = _checked(context.storage.read(upload.object_key), upload.sha256)
    plain = decrypt_pieces(job.chunk_store.data_key, stored, purpose=upload_purpose(plan.name))
    if upload.media_type != PARQUET:
        yield from read_csv(stream_of(plain), plan.schema, max_bytes=most)
        return
    chunk_rows = max(1, min(2**18, PARQUET_CELLS // len(plan.schema.columns)))
    with encrypted_copy(plain, context.settings.data_dir) as file:
        yield from read_parquet(file, plan.schema, chunk_rows=chunk_rows, max_bytes=most)


def _checked(pieces: Iterable[bytes], sha256: bytes) -> Iterator[bytes]:
    """Yield the same pieces; fail at the end if their hash is not the recorded one."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
        yield piece
    if digest.digest() != sha256:
        raise Unreadable("the upload does not match its recorded hash")


def _settle(context: Context, job: _IngestJob, reason: str | None) -> bool:
    state: Literal["ready", "rejected"] = "ready" if reason is None else "rejected"
    with context.transaction() as work:
        return ingest.settle(
            work.session,
            job.chunk_store.dataset_id,
            epoch=job.chunk_store.epoch,
            state=state,
            reason=reason,
        )
