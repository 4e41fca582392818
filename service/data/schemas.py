"""Rows of saved schemas."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from service.data.errors import NotFound
from service.data.models import SavedSchemaRow
from service.data.pagination import Paging, newest_first

_LOCK_NAME = text("SELECT pg_advisory_xact_lock(hashtextextended('saved_schema ' || :name, 0))")


def get(session: Session, schema_id: UUID) -> SavedSchemaRow:
    """One saved schema; NotFound if there is none."""
    row = session.get(SavedSchemaRow, schema_id)
    if row is None:
        raise NotFound("there is no such saved schema")
    return row


def next_version(session: Session, name: str) -> int:
    """The next version of a name, which no other transaction can take before this one ends."""
    session.execute(_LOCK_NAME, {"name": name})
    last = select(func.max(SavedSchemaRow.version)).where(SavedSchemaRow.name == name)
    return (session.scalar(last) or 0) + 1


def page(session: Session, paging: Paging, *, name: str | None) -> Sequence[SavedSchemaRow]:
    """A page of saved schemas, the newest first; of one name, or of all."""
    statement = select(SavedSchemaRow)
    if name is not None:
        statement = statement.where(SavedSchemaRow.name == name)
    return session.scalars(newest_first(statement, SavedSchemaRow, paging)).all()
