"""The job of a release, checked against its reservation."""

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from sqlalchemy.orm import Session

from scrim.spec.choice import MechanismChoice
from scrim.spec.columns import (
    Bins,
    DateBins,
    DateColumn,
    DatetimeColumn,
    IdentifierColumn,
)
from scrim.spec.release import ReleaseSpec
from scrim.spec.schema import Column, Schema, is_discrete
from service.data import datasets, populations, releases
from service.data.canonical import canonical_sha256
from service.data.context import Context
from service.data.crypto import unwrap_key
from service.data.declared import schema_of
from service.data.ledger import repository as ledger
from service.data.models import DatasetRow, PopulationRow, ReleaseRow
from synth.domain import SIZE
from synth.planning.binning import awaits_edges
from synth.planning.subject import StoredTable, Subject, subject_of
from synth.table import Table
from synth.table.drawing import draw_rows
from worker.chunks import ChunkStore
from worker.errors import Cancelled

DRY_RUN_ROWS = 10_000
"""Rows of a dry run: it tests a request, and its results mean nothing."""


class ReservedForOther(Exception):
    """The specification, rows or population differ from those of the reservation."""


@dataclass(frozen=True)
class ReleaseJob:
    """Everything a job needs, read once."""

    release_id: UUID
    asked_at: datetime
    spec: ReleaseSpec
    choice: MechanismChoice | None
    """Why this mechanism was chosen, if `auto` was requested."""
    subject: Subject
    """Which of the dataset's rows are read, and how they are protected."""
    columns: list[str]
    """The names of the released columns."""
    delta: float
    units: int
    """The reserved amount; `run` refuses it if it is not what the budget allows."""
    population_id: UUID
    population_name: str
    dataset_id: UUID
    dataset_name: str
    chunk_store: ChunkStore | None
    """The stored rows; None for a dry run."""
    public: "PublicRows | None"
    """The public dataset that it uses, if any; a dry run uses it as well."""

    @property
    def is_dry_run(self) -> bool:
        """Whether rows are drawn from the schema, and nothing is charged."""
        return self.chunk_store is None

    @property
    def seed(self) -> int:
        """The seed for drawing rows from the model, the same when a job is resumed."""
        digest = hashlib.sha256(b"scrim-rows-1\n" + self.release_id.bytes).digest()
        return int.from_bytes(digest[:6], "big")

    def open_table(self) -> Table:
        """The dataset's rows; for a dry run, rows drawn from its schema."""
        if self.chunk_store is None:
            return drawn_table(self.subject.schema, seed=self.seed)
        return _stored_table(self.subject.schema, self.chunk_store, self.subject.table)

    def open_public(self) -> Table | None:
        """The public dataset's rows, in its own schema."""
        return None if self.public is None else self.public.open_table()


@dataclass(frozen=True)
class PublicRows:
    """A public dataset: its stored rows and its declaration."""

    dataset_id: UUID
    provenance: str
    schema: Schema
    chunk_store: ChunkStore

    def open_table(self) -> Table:
        """Its rows."""
        return _stored_table(self.schema, self.chunk_store, "rows")


def load_job(context: Context, release_id: UUID) -> ReleaseJob:
    """Read the job of a release; Cancelled if its dataset was deleted."""
    with context.transaction() as work:
        release = releases.get(work.session, release_id)
        dataset = datasets.get(work.session, release.dataset_id)
        public = _find_public(work.session, release)
        population = populations.get(work.session, release.population_id)
        spec = ReleaseSpec.model_validate_json(json.dumps(release.spec))
        if not release.dry_run:
            _require_reserved(work.session, release, dataset, public, population, spec)
    return ReleaseJob(
        release_id=release_id,
        asked_at=release.created_at,
        spec=spec,
        choice=None if release.choice is None else MechanismChoice.model_validate(release.choice),
        subject=subject_of(
            spec, schema_of(dataset), population.protection, columns=release.columns
        ),
        columns=release.columns,
        delta=population.delta,
        units=release.units,
        population_id=population.id,
        population_name=population.name,
        dataset_id=dataset.id,
        dataset_name=dataset.name,
        chunk_store=None if release.dry_run else _open_chunks(context, dataset),
        public=None if public is None else _open_public(context, public),
    )


def drawn_table(schema: Schema, *, seed: int) -> Table:
    """About DRY_RUN_ROWS rows drawn uniformly from a schema; linked rows in groups of random size."""
    rng = np.random.default_rng(seed)
    # How numbers are stored does not depend on their bins.
    binned = schema.model_copy(update={"columns": [_with_bins(c) for c in schema.columns]})
    # A row in no group is drawn as a group of one.
    drawn = max(1, 2 * DRY_RUN_ROWS // (binned.places + 1))
    sizes = rng.integers(binned.places, size=drawn)
    return Table(schema, [draw_rows(binned, {SIZE: sizes}, rows=drawn, rng=rng)])


def _stored_table(schema: Schema, chunk_store: ChunkStore, table: StoredTable) -> Table:
    return Table(schema, chunk_store.read(table, chunk_store.counts()[table]))


def _find_public(session: Session, release: ReleaseRow) -> DatasetRow | None:
    if release.public_dataset_id is None:
        return None
    dataset = datasets.get(session, release.public_dataset_id)
    if dataset.state == "deleted":
        raise Cancelled
    return dataset


def _with_bins(column: Column) -> Column:
    if isinstance(column, IdentifierColumn) or (is_discrete(column) and not awaits_edges(column)):
        return column
    bins = DateBins(count=1) if isinstance(column, DateColumn | DatetimeColumn) else Bins(count=1)
    return column.model_copy(update={"bins": bins})


def _require_reserved(
    session: Session,
    release: ReleaseRow,
    dataset: DatasetRow,
    public: DatasetRow | None,
    population: PopulationRow,
    spec: ReleaseSpec,
) -> None:
    """Require that rows, specification, amount and population are those of the reservation."""
    if dataset.state == "deleted":
        raise Cancelled
    reserved = ledger.reservation(session, release.id)
    account = ledger.account(session, reserved.account)
    protection = population.protection
    found = (
        datasets.pinned_hash(dataset, public),
        canonical_sha256(spec),
        release.units,
        population.id,
        dataset.population_id,
        (protection.unit, protection.relation, protection.max_rows_per_unit),
    )
    wanted = (
        reserved.dataset_hash,
        reserved.spec_hash,
        reserved.amount_units,
        account.population_id,
        account.population_id,
        (account.unit, account.relation, account.rows_per_unit),
    )
    if dataset.state != "ready" or found != wanted:
        raise ReservedForOther


def _open_chunks(context: Context, dataset: DatasetRow) -> ChunkStore:
    assert dataset.wrapped_key is not None and dataset.content_hash is not None
    master_key = context.settings.master_key_bytes
    return ChunkStore(
        storage=context.storage,
        dataset_id=dataset.id,
        # The attempt that settled the dataset; it cannot be claimed after that.
        epoch=dataset.lease_epoch,
        content_hash=dataset.content_hash,
        data_key=unwrap_key(dataset.wrapped_key, dataset.id, master_key=master_key),
    )


def _open_public(context: Context, dataset: DatasetRow) -> PublicRows:
    schema = schema_of(dataset)
    assert not schema.is_linked and dataset.provenance is not None
    return PublicRows(dataset.id, dataset.provenance, schema.linked, _open_chunks(context, dataset))
