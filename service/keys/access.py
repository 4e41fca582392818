"""Who is calling, and may they? Dependencies of the endpoints."""

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from redis.exceptions import RedisError

from service.context import Context
from service.dependencies import Services
from service.errors import ScopeMissing, TooManyRequests, Unauthorized
from service.keys.limiter import take_token
from service.keys.schemas import Caller, Scope
from service.keys.service import find_key
from service.models import ApiKey

_bearer = HTTPBearer(auto_error=False, description="An API key, as `POST /v1/keys` made it.")


def authenticate(
    request: Request,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
    context: Services,
) -> Caller:
    """The caller, whose key works and is not used too often."""
    if credentials is None:
        raise Unauthorized
    with context.transaction() as work:
        key = find_key(work.session, credentials.credentials)
    return admit(request, context, key)


def admit(request: Request, context: Context, key: ApiKey | None) -> Caller:
    """The caller with this key, if there is one and it is not used too often."""
    if key is None:
        raise Unauthorized
    # For the log line of this request; a thread's own context variables do not reach it.
    request.state.key_id = str(key.id)
    _refuse_too_many(context, key.id)
    return Caller(key.id, frozenset(key.scopes))


def require(*scopes: Scope) -> Callable[[Caller], Awaitable[Caller]]:
    """A dependency that lets only callers with one of these scopes pass."""

    async def check(caller: Annotated[Caller, Depends(authenticate)]) -> Caller:
        refuse_without(scopes, caller)
        return caller

    return check


def refuse_without(scopes: Sequence[Scope], caller: Caller) -> None:
    """ScopeMissing, if the caller has none of these scopes."""
    if caller.scopes.isdisjoint(scopes):
        raise ScopeMissing(f"this call needs a key with the scope {' or '.join(scopes)}")


def _refuse_too_many(context: Context, key_id: UUID) -> None:
    settings = context.settings
    try:
        wait = take_token(
            context.broker, str(key_id), rate=settings.rate_limit, burst=settings.rate_burst
        )
    except RedisError as error:
        # A limit protects the service from its users; without a broker it must not stop them.
        context.log.warning("rate_limit_unavailable", error_type=type(error).__name__)
        return
    if wait > 0:
        raise TooManyRequests(
            f"this key may make {settings.rate_limit:g} requests a second; wait a moment",
            headers={"Retry-After": str(math.ceil(wait))},
        )


AnyKey = Annotated[Caller, Depends(authenticate)]
Admin = Annotated[Caller, Depends(require("admin"))]
Curator = Annotated[Caller, Depends(require("curator"))]
Analyst = Annotated[Caller, Depends(require("analyst"))]
Reader = Annotated[Caller, Depends(require("curator", "analyst"))]
"""A curator, or an analyst, who sees only releases that are published and have succeeded."""
