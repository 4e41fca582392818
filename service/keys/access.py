"""Authentication and authorisation of callers: dependencies of the endpoints."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request
from fastapi.openapi.models import HTTPBearer
from fastapi.security.base import SecurityBase
from redis.exceptions import RedisError
from sqlalchemy.orm import Session

from service.data.context import Context
from service.data.errors import ScopeMissing, TooManyRequests, Unauthorized
from service.data.keys import WorkingKey
from service.keys.schemas import Caller, Scope
from service.keys.service import find_key


@dataclass(frozen=True)
class Claim:
    """The credentials of a request, not verified yet; `verify` checks them."""

    request: Request
    context: Context
    scopes: tuple[Scope, ...]

    def verify(self, session: Session) -> Caller:
        """Return the caller; the key must be valid, have a required scope and be within its rate limit."""
        secret = _bearer_secret(self.request)
        key = find_key(session, secret) if secret else None
        caller = admit(self.request, self.context, key)
        refuse_without(self.scopes, caller)
        return caller


class AccessGuard(SecurityBase):
    """Admits only keys with one of these scopes; any key if no scope is given.

    As a dependency it returns the caller, if the route has verified the claim before it read the
    body. Otherwise it returns the claim, and the route verifies it before the endpoint runs.
    """

    def __init__(self, *scopes: Scope) -> None:
        self.scopes = scopes
        self.model = HTTPBearer(description="An API key created by `POST /v1/keys`.")
        self.scheme_name = "HTTPBearer"

    async def __call__(self, request: Request) -> Caller | Claim:
        """The caller, or a claim that the route verifies."""
        return getattr(request.state, "caller", None) or self.claim(request)

    def claim(self, request: Request) -> Claim:
        """The unverified credentials of a request."""
        return Claim(request, cast(Context, request.app.state.context), self.scopes)


def admit(request: Request, context: Context, key: WorkingKey | None) -> Caller:
    """Return the caller with this key; the key must be valid and within its rate limit."""
    if not key:
        raise Unauthorized
    # For the log line of this request; a thread's own context variables do not reach it.
    request.state.key_id = str(key.id)
    _refuse_too_many(request, context, key)
    return Caller(key.id, frozenset(key.scopes))


def refuse_without(scopes: Sequence[Scope], caller: Caller) -> None:
    """Raise ScopeMissing if scopes are required and the caller has none of them."""
    if scopes and caller.scopes.isdisjoint(scopes):
        raise ScopeMissing(f"this call needs a key with the scope {' or '.join(scopes)}")


def _bearer_secret(request: Request) -> str | None:
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else None


def _refuse_too_many(request: Request, context: Context, key: WorkingKey) -> None:
    settings = context.settings
    try:
        wait = context.limiter.take_token(key.id)
    except RedisError as error:
        # The limit only protects from overload; requests must not fail if the broker is down.
        context.log.warning("rate_limit_unavailable", error_type=type(error).__name__)
        wait = 0.0
    if wait > 0:
        raise TooManyRequests(
            f"this key may make {settings.rate_limit:g} requests a second; wait a moment",
            headers={"Retry-After": str(math.ceil(wait))},
        )
    if not context.limiter.enter(key.id, request.scope):
        raise TooManyRequests(
            f"this key may make {settings.max_requests_per_key} requests at the same time; "
            "wait until one of them is answered",
            headers={"Retry-After": "1"},
        )


AnyKey = Annotated[Caller, Depends(AccessGuard())]
Admin = Annotated[Caller, Depends(AccessGuard("admin"))]
Curator = Annotated[Caller, Depends(AccessGuard("curator"))]
Analyst = Annotated[Caller, Depends(AccessGuard("analyst"))]
Reader = Annotated[Caller, Depends(AccessGuard("curator", "analyst"))]
"""A curator, or an analyst, who sees only releases that are published and have succeeded."""
