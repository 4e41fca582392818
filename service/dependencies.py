"""FastAPI dependencies of the endpoints; the operator's commands and the workers do not load them."""

from typing import Annotated, cast
from uuid import UUID

from fastapi import Depends, Header, Path, Query, Request
from pydantic import BaseModel

from service.data.canonical import canonical_sha256
from service.data.context import Context
from service.data.pagination import DEFAULT_LIMIT, LARGEST_LIMIT, Paging
from service.idempotency import LONGEST_KEY, Attempt
from service.keys.schemas import Caller

_DESCRIPTION = (
    "A name of your choice for this request, such as a UUID. Repeat the request with it, and "
    "nothing is created twice."
)


# Asynchronous, as this never blocks: FastAPI runs synchronous dependencies in a thread.
async def current_context(request: Request) -> Context:
    """The context of the application that serves this request."""
    return cast(Context, request.app.state.context)


async def asked_paging(
    limit: Annotated[
        int, Query(ge=1, le=LARGEST_LIMIT, description="Maximum number of items on one page.")
    ] = DEFAULT_LIMIT,
    cursor: Annotated[
        str | None, Query(max_length=200, description="`next` of the previous page.")
    ] = None,
) -> Paging:
    """The requested page of a collection."""
    return Paging(limit, cursor)


def attempt(caller: Caller, request: Request, key: str | None, body: BaseModel) -> Attempt:
    """Describe a request; two bodies are the same if they mean the same."""
    return Attempt(caller, f"{request.method} {request.url.path}", key, canonical_sha256(body))


Services = Annotated[Context, Depends(current_context)]
PopulationId = Annotated[UUID, Path(description="The population's id.")]
Pages = Annotated[Paging, Depends(asked_paging)]
OptionalKey = Annotated[
    str | None,
    Header(alias="Idempotency-Key", min_length=1, max_length=LONGEST_KEY, description=_DESCRIPTION),
]
RequiredKey = Annotated[
    str,
    Header(alias="Idempotency-Key", min_length=1, max_length=LONGEST_KEY, description=_DESCRIPTION),
]
