"""The service's tables as classes. The migrations define their constraints.

The service and its workers use these through the repositories of each domain.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, FetchedValue, ForeignKey, LargeBinary, Text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TIMESTAMP
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from scrim.spec.population import Protection


class Row(DeclarativeBase):
    """A row of one of the service's tables."""

    type_annotation_map = {
        bytes: LargeBinary,
        datetime: TIMESTAMP(timezone=True),
        int: BigInteger,
        dict[str, Any]: JSONB(none_as_null=True),
        list[dict[str, Any]]: JSONB,
        list[str]: ARRAY(Text),
        str: Text,
    }


def _created() -> Mapped[datetime]:
    return mapped_column(server_default=FetchedValue())


class KeyRow(Row):
    """An API key of a person or program; the secret itself is never stored."""

    __tablename__ = "api_key"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str]
    prefix: Mapped[str]
    secret_sha256: Mapped[bytes]
    scopes: Mapped[list[str]]
    created_at: Mapped[datetime] = _created()
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class ConsoleSession(Row):
    """A visitor of the console who is signed in with a key, until `ends_at` or until signing out."""

    __tablename__ = "console_session"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    key_id: Mapped[UUID] = mapped_column(ForeignKey("api_key.id"))
    ends_at: Mapped[datetime]


class MasterKeyCheck(Row):
    """A data key of no dataset, used to check the master key."""

    __tablename__ = "master_key_check"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    wrapped_key: Mapped[bytes]


class PopulationRow(Row):
    """The protected people; the ledger holds their account under the same id."""

    __tablename__ = "population"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str]
    unit: Mapped[str]
    relation: Mapped[str]
    max_rows_per_person: Mapped[int | None]
    max_household_size: Mapped[int | None]
    cap: Mapped[dict[str, Any]]
    delta: Mapped[float]
    created_at: Mapped[datetime] = _created()

    @property
    def protection(self) -> Protection:
        """The privacy unit and the neighbouring relation."""
        return Protection.model_validate(
            {name: getattr(self, name) for name in Protection.model_fields}
        )


class SavedSchemaRow(Row):
    """One version of a schema that is saved under a name. It never changes."""

    __tablename__ = "saved_schema"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str]
    version: Mapped[int]
    declared_schema: Mapped[dict[str, Any]] = mapped_column("schema")
    created_by: Mapped[UUID] = mapped_column(ForeignKey("api_key.id"))
    created_at: Mapped[datetime] = _created()


class DatasetRow(Row):
    """A declared table, or two linked ones, and the key that its rows are encrypted with."""

    __tablename__ = "dataset"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str]
    population_id: Mapped[UUID | None] = mapped_column(ForeignKey("population.id"))
    visibility: Mapped[str]
    provenance: Mapped[str | None]
    disjoint_from_population: Mapped[bool | None]
    declared_schema: Mapped[dict[str, Any]] = mapped_column("schema")
    schema_id: Mapped[UUID | None] = mapped_column(ForeignKey("saved_schema.id"))
    state: Mapped[str] = mapped_column(default="awaiting_content")
    reason: Mapped[str | None]
    content_hash: Mapped[bytes | None]
    wrapped_key: Mapped[bytes | None]
    lease_epoch: Mapped[int] = mapped_column(default=0)
    lease_until: Mapped[datetime | None]
    outages: Mapped[int] = mapped_column(default=0)
    resume_at: Mapped[datetime | None]
    created_by: Mapped[UUID | None]
    created_at: Mapped[datetime] = _created()


class UploadRow(Row):
    """An encrypted object that holds one table of a dataset, as it was sent."""

    __tablename__ = "upload"

    dataset_id: Mapped[UUID] = mapped_column(ForeignKey("dataset.id"), primary_key=True)
    table_name: Mapped[str] = mapped_column(primary_key=True)
    object_key: Mapped[str]
    media_type: Mapped[str]
    size: Mapped[int]
    sha256: Mapped[bytes]
    created_at: Mapped[datetime] = _created()


class ReleaseRow(Row):
    """A job and its state; its budget is a reservation in the ledger."""

    __tablename__ = "release"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    dataset_id: Mapped[UUID] = mapped_column(ForeignKey("dataset.id"))
    public_dataset_id: Mapped[UUID | None] = mapped_column(ForeignKey("dataset.id"))
    population_id: Mapped[UUID] = mapped_column(ForeignKey("population.id"))
    key_id: Mapped[UUID] = mapped_column(ForeignKey("api_key.id"))
    spec: Mapped[dict[str, Any]]
    spec_hash: Mapped[bytes]
    choice: Mapped[dict[str, Any] | None]
    columns: Mapped[list[str]]
    """The names of the released columns, in order."""
    warnings: Mapped[list[dict[str, Any]]] = mapped_column(default=list)
    units: Mapped[int]
    state: Mapped[str] = mapped_column(default="queued")
    published: Mapped[bool] = mapped_column(default=False)
    dry_run: Mapped[bool] = mapped_column(default=False)
    cancel_requested: Mapped[bool] = mapped_column(default=False)
    error: Mapped[dict[str, Any] | None]
    quality: Mapped[dict[str, Any] | None]
    progress_done: Mapped[int] = mapped_column(default=0)
    progress_total: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[datetime] = _created()
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    rang_at: Mapped[datetime | None]
    lost_attempts: Mapped[int] = mapped_column(default=0)
    """Number of workers that started the job and died."""
    outages: Mapped[int] = mapped_column(default=0)
    memory_failures: Mapped[int] = mapped_column(default=0)
    resume_at: Mapped[datetime | None]
    """The reaper sends no message before this time."""
    turn_at: Mapped[datetime | None]


class ReleaseEvent(Row):
    """An event of a release, for those who follow it."""

    __tablename__ = "release_event"

    release_id: Mapped[UUID] = mapped_column(ForeignKey("release.id"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime] = _created()
    kind: Mapped[str]
    payload: Mapped[dict[str, Any]]


class ArtifactRow(Row):
    """A released file, kept under the hash of its content."""

    __tablename__ = "artifact"

    release_id: Mapped[UUID] = mapped_column(ForeignKey("release.id"), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    object_key: Mapped[str]
    media_type: Mapped[str]
    size: Mapped[int]
    sha256: Mapped[bytes]
