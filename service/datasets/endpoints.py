"""/v1/datasets"""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Path, Query, Request, Response

from service.bodies import UNLIMITED, allow_body
from service.data import datasets
from service.data.context import Context
from service.data.declared import TableName
from service.data.errors import ContentTooLarge
from service.data.media_types import CSV, GZIP, PARQUET
from service.data.pagination import Page
from service.datasets import service, uploads
from service.datasets.schemas import DatasetSummary, DatasetView, NewDataset
from service.dependencies import OptionalKey, Pages, Services, attempt
from service.keys.access import Curator
from service.problems import documented
from service.route import SchemaRoute

router = APIRouter(prefix="/v1/datasets", route_class=SchemaRoute, tags=["datasets"])

DatasetId = Annotated[UUID, Path(description="The dataset's id.")]

_BODIES = {
    media_type: {"schema": {"type": "string", "format": "binary"}}
    for media_type in (CSV, GZIP, PARQUET)
}


@router.post("", status_code=201, summary="Declare a dataset")
def create(
    body: NewDataset,
    caller: Curator,
    context: Services,
    request: Request,
    response: Response,
    idempotency_key: OptionalKey = None,
) -> DatasetView:
    """Declare a dataset: its schema, and the people it is about or where it was published."""
    with context.transaction() as work:
        view = service.create(
            work.session,
            body,
            attempt(caller, request, idempotency_key, body),
            master_key=context.settings.master_key_bytes,
        )
    response.headers["Location"] = f"/v1/datasets/{view.id}"
    return view


@router.put(
    "/{dataset_id}/content",
    status_code=202,
    summary="Upload a table",
    responses={
        200: {"model": DatasetView, "description": "Another table is still missing"},
        **documented(415),
    },
    openapi_extra={"requestBody": {"required": True, "content": _BODIES}},
)
async def upload(
    dataset_id: DatasetId,
    caller: Curator,
    context: Services,
    request: Request,
    response: Response,
    table: Annotated[
        TableName | None, Query(description="For two-level data: which table this is.")
    ] = None,
    # Headers of every body; OpenAPI documents do not list them as parameters.
    content_type: Annotated[str | None, Header(include_in_schema=False)] = None,
    content_length: Annotated[int | None, Header(ge=0, include_in_schema=False)] = None,
    content_encoding: Annotated[
        str | None, Header(description="`gzip`, if the CSV is compressed.")
    ] = None,
) -> DatasetView:
    """Upload a table as the body: CSV, gzip or Parquet.

    It is encrypted on the way to storage. When all tables have arrived, a worker reads them
    against the schema, and the dataset becomes `ready`, or `rejected` with a reason that only the
    key that declared the dataset sees.
    """
    media_type = uploads.media_type_of(content_type, content_encoding)
    if content_length is not None and content_length > context.settings.max_upload_bytes:
        raise ContentTooLarge(
            f"a table may have at most {context.settings.max_upload_bytes:,} bytes"
        )
    allow_body(request, UNLIMITED)  # Streamed, with a limit of its own.
    view = await uploads.receive(
        context, dataset_id, request.stream(), caller=caller, table=table, media_type=media_type
    )
    if view.missing_tables:
        response.status_code = 200
    return view


@router.get("", summary="List datasets")
def list_datasets(caller: Curator, context: Services, paging: Pages) -> Page[DatasetSummary]:
    """All datasets, newest first."""
    with context.transaction() as work:
        return service.list_page(work.session, paging, caller)


@router.get("/{dataset_id}", summary="Show a dataset")
def show(dataset_id: DatasetId, caller: Curator, context: Services) -> DatasetView:
    """A dataset: its schema and state, never its rows or their number."""
    with context.transaction() as work:
        return service.show(work.session, dataset_id, caller)


@router.delete("/{dataset_id}", status_code=204, summary="Delete a dataset")
def delete(dataset_id: DatasetId, caller: Curator, context: Services) -> None:
    """Destroy a dataset's key, and with it the rows. What was spent on it stays spent."""
    with context.transaction() as work:
        service.delete(work.session, dataset_id)
        work.after_commit(lambda: _remove_objects(context, dataset_id))


def _remove_objects(context: Context, dataset_id: UUID) -> None:
    try:
        context.storage.delete_all(datasets.object_prefix(dataset_id))
    except Exception as error:
        # The key is gone, so nothing is readable; repeating the call removes the rest.
        context.log.warning("objects_left", dataset_id=dataset_id, error_type=type(error).__name__)
