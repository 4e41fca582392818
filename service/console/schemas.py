"""Pages about saved schemas."""

from uuid import UUID

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import TypeAdapter

from service.console import schema_form
from service.console.access import Curator, Posted
from service.console.forms import repeat_key, validated
from service.console.pages import page
from service.console.route import ConsoleRoute
from service.data.errors import Invalid
from service.datasets import endpoints as datasets
from service.dependencies import Pages, Services
from service.schemas import endpoints as api
from service.schemas.endpoints import SchemaId
from service.schemas.schemas import NewSavedSchema

router = APIRouter(prefix="/console/schemas", route_class=ConsoleRoute)

_NEW_SCHEMA: TypeAdapter[NewSavedSchema] = TypeAdapter(NewSavedSchema)


@router.get("")
def show_all(request: Request, caller: Curator, context: Services, paging: Pages) -> Response:
    """All versions of all saved schemas."""
    return page(request, "schemas.html", schemas=api.list_schemas(caller, context, paging))


@router.post("")
def save(request: Request, caller: Curator, form: Posted, context: Services) -> Response:
    """Save the schema of a dataset under a name."""
    try:
        dataset_id = UUID(form.text("dataset_id"))
    except ValueError:
        raise Invalid("choose the dataset whose schema is saved") from None
    schema = datasets.show(dataset_id, caller, context).declared_schema
    body = validated(_NEW_SCHEMA, {"name": form.text("name"), "schema": schema})
    made = api.save(body, caller, context, request, Response(), repeat_key(form))
    return RedirectResponse(f"/console/schemas/{made.id}", status_code=303)


@router.get("/{schema_id}")
def show(request: Request, schema_id: SchemaId, caller: Curator, context: Services) -> Response:
    """One version of a saved schema."""
    saved = api.show(schema_id, caller, context)
    return page(
        request,
        "schema.html",
        saved=saved,
        tables=schema_form.tables_in(saved.declared_schema),
        schema_text=schema_form.written(saved.declared_schema),
    )
