"""Pages about API keys: who may do what."""

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import TypeAdapter

from service.console.access import Admin, Posted
from service.console.forms import Form, given, validated
from service.console.pages import page
from service.console.route import ConsoleRoute, explained
from service.data.pagination import Paging
from service.dependencies import Pages, Services
from service.keys import endpoints as api
from service.keys.endpoints import KeyId
from service.keys.schemas import NewKey

router = APIRouter(prefix="/console/keys", route_class=ConsoleRoute)

_KEY: TypeAdapter[NewKey] = TypeAdapter(NewKey)


@router.get("")
def show_all(request: Request, caller: Admin, context: Services, paging: Pages) -> Response:
    """All keys, and the form for a new one."""
    keys = api.list_keys(caller, context, paging)
    return page(request, "keys.html", keys=keys, form=Form(), made=None)


@router.post("")
def create(request: Request, caller: Admin, form: Posted, context: Services) -> Response:
    """Create a key and show it once."""
    made, shown, problem = None, form, None
    try:
        body = validated(_KEY, _body(form))
        made, shown = api.create(body, caller, context), Form()
    except Exception as error:
        problem = explained(request, error)
    keys = api.list_keys(caller, context, Paging())
    status = 201 if problem is None else problem.status
    return page(
        request, "keys.html", status=status, problem=problem, keys=keys, form=shown, made=made
    )


@router.post("/{key_id}/revoke")
def revoke(key_id: KeyId, caller: Admin, form: Posted, context: Services) -> Response:
    """Revoke a key."""
    api.revoke(key_id, caller, context)
    return RedirectResponse("/console/keys", status_code=303)


def _body(form: Form) -> dict[str, Any]:
    day = form.text("expires_on")
    return given(
        name=form.text("name"),
        scopes=form.all("scopes"),
        expires_at=f"{day}T23:59:59Z" if day else "",
    )
