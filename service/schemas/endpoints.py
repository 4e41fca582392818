"""/v1/schemas"""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request, Response

from service.data.pagination import Page
from service.dependencies import OptionalKey, Pages, Services, attempt
from service.keys.access import Curator
from service.route import SchemaRoute
from service.schemas import service
from service.schemas.schemas import NewSavedSchema, SavedSchemaSummary, SavedSchemaView

router = APIRouter(prefix="/v1/schemas", route_class=SchemaRoute, tags=["schemas"])

SchemaId = Annotated[UUID, Path(description="The id of a version of a saved schema.")]


@router.post("", status_code=201, summary="Save a schema")
def save(
    body: NewSavedSchema,
    caller: Curator,
    context: Services,
    request: Request,
    response: Response,
    idempotency_key: OptionalKey = None,
) -> SavedSchemaView:
    """Save a schema under a name. The same name again saves its next version."""
    with context.transaction() as work:
        view = service.save(work.session, body, attempt(caller, request, idempotency_key, body))
    response.headers["Location"] = f"/v1/schemas/{view.id}"
    return view


@router.get("", summary="List saved schemas")
def list_schemas(
    caller: Curator,
    context: Services,
    paging: Pages,
    name: Annotated[
        str | None, Query(max_length=200, description="Only versions of this name.")
    ] = None,
) -> Page[SavedSchemaSummary]:
    """Every version of every saved schema, newest first."""
    with context.transaction() as work:
        return service.list_page(work.session, paging, name=name)


@router.get("/{schema_id}", summary="Show a saved schema")
def show(schema_id: SchemaId, caller: Curator, context: Services) -> SavedSchemaView:
    """One version of a saved schema, with its columns."""
    with context.transaction() as work:
        return service.show(work.session, schema_id)
