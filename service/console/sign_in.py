"""Signing in with an API key, and out."""

from uuid import uuid4

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from service.console import records, sessions
from service.console.access import AnyVisitor, CurrentSession, Posted
from service.console.pages import page
from service.console.route import SIGN_IN, ConsoleRoute, explained
from service.data.errors import Unauthorized
from service.dependencies import Services
from service.keys.access import admit
from service.keys.service import find_key

HOME = "/console"

router = APIRouter(prefix=HOME, route_class=ConsoleRoute)


class UnknownKey(Unauthorized):
    """The key that was typed does not work."""

    def __init__(self) -> None:
        super().__init__()
        self.detail = "this key is unknown, expired or revoked; check it, or ask for a new one"


@router.get("/sign-in")
def ask(request: Request, session: CurrentSession, context: Services, next: str = "") -> Response:
    """The page that asks for a key."""
    response: Response = page(request, "sign_in.html", next=_inside(next))
    # The form carries this session's token, so that no other site can sign a visitor in.
    sessions.keep(response, session, request, master_key=context.settings.master_key_bytes)
    return response


@router.post("/sign-in")
def sign_in(request: Request, form: Posted, context: Services) -> Response:
    """Begin a session for a key that works."""
    with context.transaction() as work:
        key = find_key(work.session, form.text("key"))
    try:
        if key is None:
            raise UnknownKey
        admit(request, context, key)
    except Exception as error:
        problem = explained(request, error)
        goal = _inside(form.text("next"))
        return page(request, "sign_in.html", status=problem.status, problem=problem, next=goal)
    response = RedirectResponse(_inside(form.text("next")), status_code=303)
    # A new session: an earlier user of this browser may know the previous one.
    session = sessions.begin(uuid4())
    with context.transaction() as work:
        records.add(work.session, session, key.id)
    sessions.keep(response, session, request, master_key=context.settings.master_key_bytes)
    return response


@router.post("/sign-out")
def sign_out(
    form: Posted, visitor: AnyVisitor, session: CurrentSession, context: Services
) -> Response:
    """End the session, in the database and in the browser."""
    with context.transaction() as work:
        records.delete(work.session, session)
    response = RedirectResponse(SIGN_IN, status_code=303)
    sessions.forget(response)
    return response


def _inside(address: str) -> str:
    """The page to open after signing in, always within the console."""
    return address if address == HOME or address.startswith(f"{HOME}/") else HOME
