"""Register populations, show their budgets and change their caps."""

from datetime import datetime
from fractions import Fraction
from uuid import UUID

from sqlalchemy.orm import Session

from scrim.spec.budget import Budget
from scrim.spec.errors import SpecError
from scrim.spec.population import PopulationSpec
from service.data import populations
from service.data.ledger import repository as ledger
from service.data.models import PopulationRow
from service.data.pagination import Page, Paging, page_of
from service.data.populations import ShownPopulation
from service.idempotency import Attempt, claim_id
from service.populations.schemas import PopulationView

_DELTA_UNITS = 10**18
"""The ledger counts delta in units of 1e-18."""


def create(session: Session, body: PopulationSpec, attempt: Attempt) -> PopulationView:
    """Create a population and, in the same transaction, its account."""
    population_id, is_known = claim_id(session, attempt, status=201)
    if is_known:
        return show(session, population_id, is_live=attempt.caller.is_curator)
    cap_units = _cap_units(body.cap, body.delta)
    ledger.open_account(
        session,
        population_id,
        unit=body.unit,
        relation=body.relation,
        rows_per_unit=body.max_rows_per_unit,
        cap_units=cap_units,
        # The decimal number as written, rounded down: a smaller delta is a stronger guarantee.
        delta_units=int(Fraction(repr(body.delta)) * _DELTA_UNITS),
    )
    row = PopulationRow(
        id=population_id,
        cap=body.cap.model_dump(mode="json", exclude_none=True),
        **body.model_dump(exclude={"cap"}),
    )
    session.add(row)
    session.flush()
    return show(session, population_id, is_live=attempt.caller.is_curator)


def show(session: Session, population_id: UUID, *, is_live: bool) -> PopulationView:
    """One population with its budget: now, or as of the last midnight."""
    population = populations.shown(session, population_id)
    return _view(session, population, as_of=None if is_live else ledger.last_midnight(session))


def change_cap(
    session: Session, population_id: UUID, cap: Budget, *, may_rise: bool
) -> PopulationView:
    """Change the cap with an entry in the ledger. BudgetExhausted if below what is spent and reserved.

    The cap is a promise to the protected people. Raising it breaks the promise, so the caller must
    ask for that explicitly.
    """
    row = populations.get(session, population_id)
    cap_units = _cap_units(cap, row.delta)
    if cap_units > ledger.account(session, population_id).cap_units and not may_rise:
        raise SpecError("this cap is higher than the present one")
    ledger.set_cap(session, population_id, cap_units=cap_units)
    return show(session, population_id, is_live=True)


def list_page(session: Session, paging: Paging, *, is_live: bool) -> Page[PopulationView]:
    """A page of populations with their budgets: now, or as of the last midnight."""
    as_of = None if is_live else ledger.last_midnight(session)
    return page_of(
        populations.page(session, paging), paging, lambda each: _view(session, each, as_of=as_of)
    )


def _view(
    session: Session, population: ShownPopulation, *, as_of: datetime | None
) -> PopulationView:
    if as_of is None:
        return PopulationView.of(population, population.account, as_of=None)
    account = ledger.account_at(session, population.id, as_of)
    return PopulationView.of(population, account, as_of=as_of)


def _cap_units(cap: Budget, delta: float) -> int:
    units = cap.units(delta)
    if units < 1:
        raise SpecError("the cap is below the smallest amount, 1e-12 rho; allow more")
    return units
