"""Authentication and authorisation of visitors: dependencies of the console's routes."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from service.bodies import MEBIBYTE, allow_body
from service.console.forms import Form, read_form
from service.console.sessions import Session, begin, session_of
from service.data import keys
from service.data.errors import ServiceError, Unauthorized
from service.dependencies import Services
from service.keys.access import admit, refuse_without
from service.keys.schemas import Caller, Scope

FORM_BYTES = 2 * MEBIBYTE
"""Maximum bytes of a form; the API accepts larger schemas."""


class SignInNeeded(Unauthorized):
    """The visitor is not signed in, or the session has ended."""


class ForeignForm(ServiceError):
    """A form that does not come from a page of this session."""

    status, type, title = 403, "foreign-form", "Form out of date"

    def __init__(self) -> None:
        super().__init__(
            "this form belongs to another session; reload the page and submit it again"
        )


@dataclass(frozen=True)
class Visitor:
    """The signed-in visitor."""

    caller: Caller
    name: str
    """The name of the key."""
    session: Session


async def current_session(request: Request, context: Services) -> Session:
    """Return the session of this request, or a new one."""
    known = session_of(request, master_key=context.settings.master_key_bytes)
    request.state.session = known or begin()
    return request.state.session  # type: ignore[no-any-return]


CurrentSession = Annotated[Session, Depends(current_session)]


def signed_in(request: Request, session: CurrentSession, context: Services) -> Visitor:
    """Return the visitor; the key must be valid and within its rate limit."""
    if session.id is None:
        raise SignInNeeded
    with context.transaction() as work:
        key = keys.find_signed_in(work.session, session.id)
    if key is None:
        raise SignInNeeded
    allow_body(request, min(FORM_BYTES, context.settings.max_body_bytes))
    request.state.visitor = Visitor(admit(request, context, key), key.name, session)
    return request.state.visitor  # type: ignore[no-any-return]


def require(*scopes: Scope) -> Callable[[Visitor], Awaitable[Caller]]:
    """Build a dependency that admits only visitors with one of these scopes."""

    async def check(visitor: Annotated[Visitor, Depends(signed_in)]) -> Caller:
        refuse_without(scopes, visitor.caller)
        return visitor.caller

    return check


async def own_form(request: Request, session: CurrentSession) -> Form:
    """Return the submitted form; it must come from a page of this session."""
    form = await read_form(request)
    if not session.accepts(form.text("token")):
        raise ForeignForm
    return form


Posted = Annotated[Form, Depends(own_form)]
AnyVisitor = Annotated[Caller, Depends(require("admin", "curator", "analyst"))]
Admin = Annotated[Caller, Depends(require("admin"))]
Curator = Annotated[Caller, Depends(require("curator"))]
Analyst = Annotated[Caller, Depends(require("analyst"))]
Reader = Annotated[Caller, Depends(require("curator", "analyst"))]
