"""Pages about datasets: declaring a table, uploading it, and destroying it."""

from typing import Any, Literal
from uuid import UUID

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import TypeAdapter

from service.bodies import UNLIMITED, allow_body
from service.console import schema_form
from service.console.access import Curator, CurrentSession, ForeignForm, Posted
from service.console.dataset_editor import (
    EDITING,
    again,
    as_draft,
    body_of,
    copied,
    edited,
    editor,
    populations_of,
)
from service.console.forms import Form, repeat_key, validated
from service.console.multipart import FileForm
from service.console.pages import page
from service.console.route import ConsoleRoute, explained
from service.data.context import Context
from service.data.errors import Invalid, UnsupportedMediaType
from service.data.media_types import CSV, GZIP, PARQUET
from service.datasets import endpoints as api
from service.datasets import uploads
from service.datasets.endpoints import DatasetId
from service.datasets.schemas import NewDataset, NewPrivateDataset, NewPublicDataset
from service.dependencies import Pages, Services
from service.keys.schemas import Caller
from service.populations import endpoints as populations

router = APIRouter(prefix="/console/datasets", route_class=ConsoleRoute)

_DATASET: TypeAdapter[NewPrivateDataset | NewPublicDataset] = TypeAdapter(NewDataset)
# By file name: the media type a browser sends depends on the programs installed there.
_MEDIA_TYPES = {
    ".csv": CSV,
    ".csv.gz": GZIP,
    ".parquet": PARQUET,
}


@router.get("")
def show_all(request: Request, caller: Curator, context: Services, paging: Pages) -> Response:
    """All datasets."""
    names = {each.id: each.name for each in populations_of(caller, context)}
    datasets = api.list_datasets(caller, context, paging)
    return page(request, "datasets.html", datasets=datasets, populations=names)


@router.get("/new")
def ask(
    request: Request,
    caller: Curator,
    context: Services,
    population: str = "",
    levels: Literal["one", "two"] = "one",
    source: str = "",
    retry: UUID | None = None,
) -> Response:
    """The form for a new dataset of one table or two.

    `source` names a schema to begin with. `retry` names a dataset to declare again, such as a rejected one.
    """
    form = Form([("population_id", population), ("visibility", "private"), ("levels", levels)])
    draft, mode, text = schema_form.draft_of(form), "rows", ""
    if retry is not None:
        before = api.show(retry, caller, context)
        form = again(before)
        draft, mode, text = as_draft(before.declared_schema)
    elif source:
        draft, mode, text = as_draft(copied(source, caller, context))
    return editor(request, caller, context, form, draft, mode=mode, schema_json=text)


@router.post("/new")
def create(request: Request, caller: Curator, form: Posted, context: Services) -> Response:
    """Change the form, or declare the dataset."""
    action = form.text("action")
    if action.partition(":")[0] in EDITING:
        return edited(request, caller, context, form, action)
    try:
        body = validated(_DATASET, body_of(form))
        made = api.create(body, caller, context, request, Response(), repeat_key(form))
    except Exception as error:
        problem = explained(request, error)
        if form.text("mode") != "json":
            problem = schema_form.with_labels(problem)
        draft = schema_form.draft_of(form)
        return editor(request, caller, context, form, draft, problem=problem)
    return RedirectResponse(f"/console/datasets/{made.id}", status_code=303)


@router.get("/{dataset_id}")
def show(request: Request, dataset_id: DatasetId, caller: Curator, context: Services) -> Response:
    """A dataset: its declaration and its state."""
    return _shown(request, dataset_id, caller, context)


@router.get("/{dataset_id}/state")
def show_state(
    request: Request, dataset_id: DatasetId, caller: Curator, context: Services
) -> Response:
    """The part of the page that changes by itself."""
    dataset = api.show(dataset_id, caller, context)
    return page(request, "dataset_state.html", dataset=dataset)


@router.post("/{dataset_id}/content")
async def upload(
    request: Request,
    dataset_id: DatasetId,
    caller: Curator,
    session: CurrentSession,
    context: Services,
) -> Response:
    """Receive a file from a form as a stream."""
    allow_body(request, UNLIMITED)  # Streamed, with a limit of its own.
    form = FileForm(request)
    await form.open()
    if not session.accepts(form.fields.get("token")):
        raise ForeignForm
    if not form.filename:
        raise Invalid("choose a file to upload")
    table: Any = form.fields.get("table") or None
    await uploads.receive(
        context,
        dataset_id,
        form.content(),
        caller=caller,
        table=table,
        media_type=_media_type_of(form.filename),
    )
    return RedirectResponse(f"/console/datasets/{dataset_id}", status_code=303)


@router.post("/{dataset_id}/delete")
def delete(dataset_id: DatasetId, caller: Curator, form: Posted, context: Services) -> Response:
    """Destroy the rows."""
    api.delete(dataset_id, caller, context)
    return RedirectResponse("/console/datasets", status_code=303)


def _shown(request: Request, dataset_id: DatasetId, caller: Caller, context: Context) -> Response:
    dataset = api.show(dataset_id, caller, context)
    population = None
    if dataset.population_id is not None:
        population = populations.show(dataset.population_id, caller, context)
    return page(
        request,
        "dataset.html",
        dataset=dataset,
        population=population,
        tables=schema_form.tables_in(dataset.declared_schema),
        rules=schema_form.rules_in(dataset.declared_schema),
        schema_text=schema_form.written(dataset.declared_schema),
        most_bytes=context.settings.max_upload_bytes,
        repeat_key=repeat_key(),
    )


def _media_type_of(filename: str) -> str:
    name = filename.lower()
    for ending, media_type in _MEDIA_TYPES.items():
        if name.endswith(ending):
            return media_type
    raise UnsupportedMediaType(f"choose a file that ends in {', '.join(_MEDIA_TYPES)}")
