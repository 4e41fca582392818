"""Rows of populations."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Select, bindparam, column, select, table
from sqlalchemy.orm import Session

from service.data.errors import NotFound
from service.data.ledger.records import LedgerAccount
from service.data.models import PopulationRow
from service.data.pagination import Paging, newest_first


class ShownPopulation(NamedTuple):
    """A population as responses show it, with its present balance."""

    id: UUID
    name: str
    unit: str
    relation: str
    max_rows_per_person: int | None
    max_household_size: int | None
    cap: dict[str, Any]
    delta: float
    created_at: datetime
    account: LedgerAccount

    @classmethod
    def of(cls, row: Sequence[Any]) -> "ShownPopulation":
        """A row of `_SHOWN_POPULATIONS`: the population's columns, then the account's."""
        return cls._make((*row[:_OWN], LedgerAccount(*row[_OWN:])))


_OWN = len(ShownPopulation._fields) - 1


def _select_shown() -> Select[Any]:
    """Populations with their balances in one statement, so that both are from the same moment."""
    population = PopulationRow.__table__
    names = [field.name for field in fields(LedgerAccount)]
    account = table("account", *map(column, names), schema="ledger")
    return select(
        *(population.c[name] for name in ShownPopulation._fields[:_OWN]),
        *(account.c[name].label(f"account_{name}") for name in names),
    ).join_from(population, account, account.c.population_id == population.c.id)


_SHOWN_POPULATIONS = _select_shown()
_SHOWN_POPULATION = _SHOWN_POPULATIONS.where(PopulationRow.__table__.c.id == bindparam("id"))


def get(session: Session, population_id: UUID) -> PopulationRow:
    """One population; NotFound if there is none."""
    row = session.get(PopulationRow, population_id)
    if row is None:
        raise NotFound("there is no such population")
    return row


def shown(session: Session, population_id: UUID) -> ShownPopulation:
    """One population as responses show it; NotFound if there is none."""
    row = session.connection().execute(_SHOWN_POPULATION, {"id": population_id}).one_or_none()
    if row is None:
        raise NotFound("there is no such population")
    return ShownPopulation.of(row)


def page(session: Session, paging: Paging) -> Sequence[ShownPopulation]:
    """A page of populations, the newest first."""
    rows = session.execute(newest_first(_SHOWN_POPULATIONS, PopulationRow, paging))
    return [ShownPopulation.of(row) for row in rows]
