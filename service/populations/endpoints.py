"""/v1/populations"""

from fastapi import APIRouter, Request, Response

from scrim.spec.population import PopulationSpec
from service.data.pagination import Page
from service.dependencies import OptionalKey, Pages, PopulationId, Services, attempt
from service.keys.access import Admin, AnyKey
from service.populations import service
from service.populations.schemas import PopulationView
from service.route import ApiRoute

router = APIRouter(prefix="/v1/populations", route_class=ApiRoute, tags=["populations"])


@router.post("", status_code=201, summary="Register a population")
def create(
    body: PopulationSpec,
    caller: Admin,
    context: Services,
    request: Request,
    response: Response,
    idempotency_key: OptionalKey = None,
) -> PopulationView:
    """Register a population and open its account.

    The cap is converted to rho once, rounded down, and bounds everything that will ever be spent
    on these people, over all datasets and releases.
    """
    with context.transaction() as work:
        tried = attempt(caller, request, idempotency_key, body)
        view = service.create(work.session, body, tried)
        # Anchored, so that a restored backup without the account is detected.
        work.after_commit(context.advance_anchor)
    response.headers["Location"] = f"/v1/populations/{view.id}"
    return view


@router.get("", summary="List populations")
def list_populations(caller: AnyKey, context: Services, paging: Pages) -> Page[PopulationView]:
    """All populations with their budgets, newest first.

    Curators see the present balance, other callers that of the last midnight (UTC).
    """
    with context.transaction() as work:
        return service.list_page(work.session, paging, is_live=caller.is_curator)


@router.get("/{population_id}", summary="Show a population")
def show(population_id: PopulationId, caller: AnyKey, context: Services) -> PopulationView:
    """A population with its budget.

    Curators see the present balance, other callers that of the last midnight (UTC).
    """
    with context.transaction() as work:
        return service.show(work.session, population_id, is_live=caller.is_curator)
