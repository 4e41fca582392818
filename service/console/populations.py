"""Pages about populations: the protected people, their budget, and the ledger of its spending."""

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import TypeAdapter

from scrim.spec.population import PopulationSpec
from service.console.access import Admin, AnyVisitor, Curator, Posted
from service.console.forms import Form, given, number, repeat_key, validated
from service.console.pages import page
from service.console.route import ConsoleRoute, explained
from service.data.context import Context
from service.data.pagination import Paging
from service.dependencies import Pages, PopulationId, Services
from service.keys.schemas import Caller
from service.ledger import endpoints as ledger
from service.populations import endpoints as api

router = APIRouter(prefix="/console/populations", route_class=ConsoleRoute)

LEDGER_LINES = 25
"""Entries of the ledger on one page."""
_POPULATION: TypeAdapter[PopulationSpec] = TypeAdapter(PopulationSpec)


@router.get("")
def show_all(request: Request, caller: AnyVisitor, context: Services, paging: Pages) -> Response:
    """All populations with their budgets."""
    return page(
        request, "populations.html", populations=api.list_populations(caller, context, paging)
    )


@router.get("/new")
def ask(request: Request, caller: Admin) -> Response:
    """The form for a new population."""
    return page(request, "population_new.html", form=Form(), repeat_key=repeat_key())


@router.post("/new")
def create(request: Request, caller: Admin, form: Posted, context: Services) -> Response:
    """Register a population."""
    try:
        body = validated(_POPULATION, _body(form))
        made = api.create(body, caller, context, request, Response(), repeat_key(form))
    except Exception as error:
        problem = explained(request, error)
        return page(
            request,
            "population_new.html",
            status=problem.status,
            problem=problem,
            form=form,
            repeat_key=repeat_key(form, problem),
        )
    return RedirectResponse(f"/console/populations/{made.id}", status_code=303)


@router.get("/{population_id}")
def show(
    request: Request,
    population_id: PopulationId,
    caller: AnyVisitor,
    context: Services,
    cursor: str | None = None,
) -> Response:
    """A population, its budget and, for curators, its ledger."""
    return _shown(request, population_id, caller, context, cursor)


@router.get("/{population_id}/verify")
def verify(
    request: Request, population_id: PopulationId, caller: Curator, context: Services
) -> Response:
    """The same page, with the result of a check of the whole ledger."""
    found = ledger.verify(population_id, caller, context)
    return _shown(request, population_id, caller, context, verification=found)


def _shown(
    request: Request,
    population_id: PopulationId,
    caller: Caller,
    context: Context,
    cursor: str | None = None,
    **values: Any,
) -> Response:
    entries = None
    if caller.is_curator:
        paging = Paging(limit=LEDGER_LINES, cursor=cursor)
        entries = ledger.list_entries(population_id, caller, context, paging)
    return page(
        request,
        "population.html",
        population=api.show(population_id, caller, context),
        entries=entries,
        is_first=cursor is None,
        **{"verification": None} | values,
    )


def _body(form: Form) -> dict[str, Any]:
    """Return the submitted form as the body that the API expects."""
    unit = form.text("unit", "row")
    bound = {"person": "max_rows_per_person", "household": "max_household_size"}.get(unit)
    kind = "rho" if form.text("cap_kind") == "rho" else "epsilon"
    body = given(
        name=form.text("name"),
        unit=unit,
        relation=form.text("relation"),
        delta=number(form.text("delta")),
    )
    body["cap"] = given(**{kind: number(form.text("cap"))})
    if bound is not None:
        body |= given(**{bound: number(form.text("bound"))})
    return body
