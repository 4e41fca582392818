"""/v1/populations/{id}/ledger"""

from datetime import datetime
from typing import Literal
from uuid import UUID

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from scrim.spec.budget import rho_of_units
from service.data.ledger import repository
from service.data.ledger.chain import verify_chain
from service.data.ledger.records import AuditEntry
from service.data.pagination import Page, encode_cursor
from service.data.populations import get as get_population
from service.data.views import View
from service.dependencies import Pages, PopulationId, Services
from service.keys.access import Curator
from service.route import ApiRoute

router = APIRouter(
    prefix="/v1/populations/{population_id}/ledger", route_class=ApiRoute, tags=["ledger"]
)


class EntryView(View):
    """One change of a population's balance."""

    seq: int
    """Its number, counted from 1."""
    at: datetime
    """When it was written; for an operation, rounded down to the hour."""
    kind: Literal["open_account", "set_cap", "reserve", "operation", "close", "reopen"]
    """What changed the balance."""
    release_id: UUID | None
    """The release it is about; null for the account itself."""
    operation: int | None
    """Number of the operation within its release."""
    rho: float
    """The cap, the amount reserved, the price paid, or what was returned or reserved again."""
    digest: str | None
    """SHA-256 over what an operation asked, its price and its noisy outcome; certificates contain it too."""
    hash: str
    """SHA-256 over this entry and the previous hash."""
    previous_hash: str
    """Hash of the previous entry; zeros for the first."""

    @classmethod
    def of(cls, entry: AuditEntry) -> "EntryView":
        """An entry, for display."""
        return cls(
            seq=entry.seq,
            at=_shown_time(entry),
            kind=entry.kind,
            release_id=entry.release_id,
            operation=entry.operation,
            rho=rho_of_units(entry.units),
            digest=entry.digest,
            hash=entry.hash.hex(),
            previous_hash=entry.previous_hash.hex(),
        )


def _shown_time(entry: AuditEntry) -> datetime:
    # How long an operation took depends on the rows, so the time between two is not shown.
    if entry.kind == "operation":
        return entry.at.replace(minute=0, second=0, microsecond=0)
    return entry.at


class VerificationView(View):
    """The result of a check of the ledger."""

    ok: bool
    """Whether every hash and every balance follows from the entries."""
    entries: int
    """Number of valid entries, counted from the first."""
    head: str
    """Hash of the last valid entry."""
    fault: str | None
    """The first inconsistency that was found; null if there is none."""


@router.get("", summary="Read the ledger")
def list_entries(
    population_id: PopulationId, caller: Curator, context: Services, paging: Pages
) -> Page[EntryView]:
    """Every change of the population's balance, oldest first."""
    after = paging.position(_number) or 0
    with context.transaction() as work:
        get_population(work.session, population_id)
        found = repository.entries(work.session, population_id, after=after, limit=paging.limit + 1)
    shown = [EntryView.of(entry) for entry in found[: paging.limit]]
    more = len(found) > paging.limit
    return Page(items=shown, next=encode_cursor(shown[-1].seq) if more else None)


# Its own response class: otherwise the route's transaction would be idle for too long.
@router.get("/verify", summary="Verify the ledger", response_class=JSONResponse)
def verify(population_id: PopulationId, caller: Curator, context: Services) -> VerificationView:
    """Recompute every hash of the chain, and every balance from its entries."""
    with context.transaction() as work:
        get_population(work.session, population_id)
    report = verify_chain(context.engine, population_id)
    return VerificationView(
        ok=report.ok, entries=report.entries, head=report.head.hex(), fault=report.fault
    )


def _number(position: object) -> int:
    if not isinstance(position, int) or not 0 <= position < 2**63:
        raise ValueError("not the number of an entry")
    return position
