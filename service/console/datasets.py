"""Pages about datasets: declaring a table, uploading it, and destroying it."""

from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import TypeAdapter

from service.bodies import UNLIMITED, allow_body
from service.console import schema_form
from service.console.access import Curator, CurrentSession, ForeignForm, Posted
from service.console.forms import Form, given, repeat_key, validated
from service.console.multipart import FileForm
from service.console.pages import page
from service.console.route import ConsoleRoute, explained
from service.data.context import Context
from service.data.errors import Invalid, ProblemDocument, UnsupportedMediaType
from service.data.media_types import CSV, GZIP, PARQUET
from service.data.pagination import LARGEST_LIMIT, Paging
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
_EDITING = ("add", "remove", "to_json", "to_rows", "update")


@router.get("")
def show_all(request: Request, caller: Curator, context: Services, paging: Pages) -> Response:
    """All datasets."""
    names = {each.id: each.name for each in _populations(caller, context)}
    datasets = api.list_datasets(caller, context, paging)
    return page(request, "datasets.html", datasets=datasets, populations=names)


@router.get("/new")
def ask(
    request: Request,
    caller: Curator,
    context: Services,
    population: str = "",
    levels: Literal["one", "two"] = "one",
) -> Response:
    """The form for a new dataset of one table or two."""
    form = Form([("population_id", population), ("visibility", "private"), ("levels", levels)])
    return _editor(request, caller, context, form, schema_form.draft_of(form))


@router.post("/new")
def create(request: Request, caller: Curator, form: Posted, context: Services) -> Response:
    """Change the form, or declare the dataset."""
    action = form.text("action")
    if action.partition(":")[0] in _EDITING:
        return _edited(request, caller, context, form, action)
    try:
        body = validated(_DATASET, _body(form))
        made = api.create(body, caller, context, request, Response(), repeat_key(form))
    except Exception as error:
        problem = explained(request, error)
        if form.text("mode") != "json":
            problem = schema_form.with_labels(problem)
        draft = schema_form.draft_of(form)
        return _editor(request, caller, context, form, draft, problem=problem)
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
    )


def _edited(
    request: Request, caller: Caller, context: Context, form: Form, action: str
) -> Response:
    """Return the form after one of its own buttons was pressed."""
    draft, mode, text = schema_form.draft_of(form), form.text("mode"), form.text("schema_json")
    problem = None
    if action == "to_json":
        mode = "json"
        text = schema_form.written(schema_form.schema_of(form))
    elif action == "to_rows":
        try:
            found = schema_form.draft_from(schema_form.schema_of(form))
            if found is None:
                raise Invalid("this schema cannot be shown as rows; edit it as JSON")
            draft, mode = found, "rows"
        except Invalid as error:
            problem = explained(request, error)
    else:
        draft = schema_form.changed(draft, action)
    return _editor(
        request, caller, context, form, draft, problem=problem, mode=mode, schema_json=text
    )


def _editor(
    request: Request,
    caller: Caller,
    context: Context,
    form: Form,
    draft: schema_form.Draft,
    *,
    problem: ProblemDocument | None = None,
    mode: str | None = None,
    schema_json: str | None = None,
) -> Response:
    return page(
        request,
        "dataset_new.html",
        status=200 if problem is None else problem.status,
        problem=problem,
        form=form,
        draft=draft,
        mode=form.text("mode", "rows") if mode is None else mode,
        schema_json=form.text("schema_json") if schema_json is None else schema_json,
        populations=_populations(caller, context),
        repeat_key=repeat_key(form, problem),
        types=schema_form.TYPES,
        bins=schema_form.BINS,
        places=draft.places(),
    )


def _populations(caller: Caller, context: Context) -> list[Any]:
    return populations.list_populations(caller, context, Paging(limit=LARGEST_LIMIT)).items


def _body(form: Form) -> dict[str, Any]:
    """Return the submitted form as the body that the API expects."""
    body = given(name=form.text("name"), visibility=form.text("visibility"))
    if form.text("visibility") == "public":
        body |= given(provenance=form.text("provenance"))
        body["disjoint_from_population"] = form.has("disjoint")
    else:
        body |= given(population_id=form.text("population_id"))
    return {**body, "schema": schema_form.schema_of(form)}


def _media_type_of(filename: str) -> str:
    name = filename.lower()
    for ending, media_type in _MEDIA_TYPES.items():
        if name.endswith(ending):
            return media_type
    raise UnsupportedMediaType(f"choose a file that ends in {', '.join(_MEDIA_TYPES)}")
