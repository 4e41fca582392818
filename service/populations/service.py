"""Opening populations and showing their budgets."""

from fractions import Fraction
from uuid import UUID

from sqlalchemy.orm import Session

from service.idempotency import Attempt, claim_id
from service.ledger import repository as ledger
from service.models import PopulationRow
from service.pagination import Page, Paging, page_of
from service.populations import repository
from service.populations.schemas import PopulationView
from synth.spec.errors import SpecError
from synth.spec.population import Population

_DELTA_UNITS = 10**18


def create(session: Session, body: Population, attempt: Attempt) -> PopulationView:
    """A population and, in the same transaction, its account."""
    population_id, is_known = claim_id(session, attempt, status=201)
    if is_known:
        return show(session, population_id)
    cap_units = body.cap.units(body.delta)
    if cap_units < 1:
        raise SpecError("the cap is below the smallest amount, 1e-12 rho; allow more")
    account = ledger.open_account(
        session,
        population_id,
        unit=body.unit,
        relation=body.relation,
        rows_per_unit=body.rows,
        cap_units=cap_units,
        # The number as it was written, rounded down: a smaller delta promises more.
        delta_units=int(Fraction(repr(body.delta)) * _DELTA_UNITS),
    )
    row = PopulationRow(
        id=population_id,
        cap=body.cap.model_dump(mode="json", exclude_none=True),
        **body.model_dump(exclude={"cap"}),
    )
    session.add(row)
    session.flush()
    return PopulationView.of(row, account)


def show(session: Session, population_id: UUID) -> PopulationView:
    """One population with its budget."""
    row = repository.get(session, population_id)
    return PopulationView.of(row, ledger.account(session, row.id))


def list_page(session: Session, paging: Paging) -> Page[PopulationView]:
    """A page of populations with their budgets."""
    return page_of(
        repository.page(session, paging),
        paging,
        lambda row: PopulationView.of(row, ledger.account(session, row.id)),
    )
