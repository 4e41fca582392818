"""Saving and showing schemas."""

from uuid import UUID

from sqlalchemy.orm import Session

from service.data import schemas
from service.data.declared import content_of
from service.data.models import SavedSchemaRow
from service.data.pagination import Page, Paging, page_of
from service.idempotency import Attempt, claim_id
from service.schemas.schemas import NewSavedSchema, SavedSchemaSummary, SavedSchemaView


def save(session: Session, body: NewSavedSchema, attempt: Attempt) -> SavedSchemaView:
    """Save a schema as the next version of its name."""
    schema_id, is_known = claim_id(session, attempt, status=201)
    if is_known:
        return show(session, schema_id)
    row = SavedSchemaRow(
        id=schema_id,
        name=body.name,
        version=schemas.next_version(session, body.name),
        declared_schema=content_of(body.declared_schema),
        created_by=attempt.caller.key_id,
    )
    session.add(row)
    session.flush()
    return _view(row)


def show(session: Session, schema_id: UUID) -> SavedSchemaView:
    """One saved schema."""
    return _view(schemas.get(session, schema_id))


def list_page(session: Session, paging: Paging, *, name: str | None) -> Page[SavedSchemaSummary]:
    """A page of saved schemas, without their columns."""
    return page_of(schemas.page(session, paging, name=name), paging, _summary)


def _summary(row: SavedSchemaRow) -> SavedSchemaSummary:
    return SavedSchemaSummary.model_validate(row, from_attributes=True)


def _view(row: SavedSchemaRow) -> SavedSchemaView:
    return SavedSchemaView(**_summary(row).model_dump(), schema=row.declared_schema)
