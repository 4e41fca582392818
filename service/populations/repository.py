"""Rows of populations."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.errors import NotFound
from service.models import PopulationRow
from service.pagination import Paging, newest_first


def get(session: Session, population_id: UUID) -> PopulationRow:
    """One population; NotFound if there is none."""
    row = session.get(PopulationRow, population_id)
    if row is None:
        raise NotFound("there is no such population")
    return row


def page(session: Session, paging: Paging) -> Sequence[PopulationRow]:
    """A page of populations, the newest first."""
    return session.scalars(newest_first(select(PopulationRow), PopulationRow, paging)).all()
