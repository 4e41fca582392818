"""Pages about releases: requesting one, following it, and using its results."""

from collections.abc import AsyncIterator
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse
from pydantic import TypeAdapter

from scrim.spec.mechanism.base import TWO_LEVEL_TYPES
from scrim.spec.question import MAX_SAMPLE_ROWS, Question, SampleRequest
from scrim.spec.schema import Schema
from service.console import plots, release_form
from service.console.access import Admin, Analyst, Curator, Posted, Reader
from service.console.forecast_chart import chart_of
from service.console.forms import Form, number, repeat_key, validated
from service.console.pages import page
from service.console.route import ConsoleRoute, explained
from service.data import datasets as dataset_rows
from service.data import releases
from service.data.context import Context
from service.data.declared import schema_of
from service.data.errors import ArtifactDamaged, ProblemDocument
from service.data.pagination import LARGEST_LIMIT, Paging
from service.data.progress import FINAL_STATES
from service.datasets import endpoints as datasets
from service.dependencies import Pages, Services
from service.keys.schemas import Caller
from service.populations import endpoints as populations
from service.releases import endpoints as api
from service.releases import turns
from service.releases.endpoints import ArtifactName, Feed, ReleaseId
from service.releases.resumption import is_resumable
from service.releases.schemas import ModelAnswer, ModelAnswers, ReleaseView

router = APIRouter(prefix="/console/releases", route_class=ConsoleRoute)

MOST_LINES = 200
"""Largest number of lines of a table of answers."""
_QUESTION: TypeAdapter[Question] = TypeAdapter(Question)
_SAMPLE: TypeAdapter[SampleRequest] = TypeAdapter(SampleRequest)


@router.get("")
def show_all(request: Request, caller: Reader, context: Services, paging: Pages) -> Response:
    """All releases; for an analyst, only published ones."""
    return page(
        request,
        "releases.html",
        releases=api.list_releases(caller, context, paging),
        populations=_populations(caller, context),
        datasets=_dataset_names(caller, context),
    )


async def planning_turn(request: Request, caller: Curator) -> AsyncIterator[None]:
    """The turn of a page that previews or queues a release."""
    async with turns.of(request).turn(caller.key_id):
        yield


@router.get("/new", dependencies=[Depends(planning_turn)])
def ask(request: Request, caller: Curator, context: Services, dataset: str = "") -> Response:
    """The form for a new release."""
    known = _datasets(caller, context)
    ready = [each for each in known if each.visibility == "private" and each.state == "ready"]
    chosen = dataset or (str(ready[0].id) if ready else "")
    return _editor(request, caller, context, release_form.new_form(chosen))


@router.post("/new", dependencies=[Depends(planning_turn)])
def create(request: Request, caller: Curator, form: Posted, context: Services) -> Response:
    """Change the form, preview the release, or queue it."""
    action = form.text("action")
    if action != "submit":
        return _editor(request, caller, context, release_form.changed(form, action))
    try:
        body = validated(release_form.RELEASE, release_form.body_of(form))
        made = api.create(body, caller, context, request, Response(), repeat_key(form))
    except Exception as error:
        problem = explained(request, error)
        return _editor(request, caller, context, form, refused=problem)
    return RedirectResponse(f"/console/releases/{made.id}", status_code=303)


@router.post("/preview", dependencies=[Depends(planning_turn)])
def preview(request: Request, caller: Curator, form: Posted, context: Services) -> Response:
    """The preview alone, for a form that is being filled in."""
    return page(request, "preview.html", **_previewed(request, caller, context, form))


@router.get("/{release_id}")
def show(request: Request, release_id: ReleaseId, caller: Reader, context: Services) -> Response:
    """A release: its state, its cost and its results."""
    return _shown(request, release_id, caller, context)


@router.get("/{release_id}/events")
def watch(
    release_id: ReleaseId,
    caller: Reader,
    context: Services,
    feed: Feed,
    last_event_id: Annotated[int, Header(ge=0, lt=2**63)] = 0,
) -> Response:
    """Follow a release through the same event stream as the API."""
    return api.watch(release_id, caller, context, feed, last_event_id)


@router.post("/{release_id}/publish")
def publish(release_id: ReleaseId, caller: Curator, form: Posted, context: Services) -> Response:
    """Let analysts see a release."""
    api.publish(release_id, caller, context)
    return RedirectResponse(f"/console/releases/{release_id}", status_code=303)


@router.post("/{release_id}/cancel")
def cancel(release_id: ReleaseId, caller: Curator, form: Posted, context: Services) -> Response:
    """Cancel a release."""
    api.cancel(release_id, caller, context)
    return RedirectResponse(f"/console/releases/{release_id}", status_code=303)


@router.post("/{release_id}/resume")
def resume(release_id: ReleaseId, caller: Admin, form: Posted, context: Services) -> Response:
    """Resume a failed release."""
    api.resume(release_id, caller, context)
    return RedirectResponse(f"/console/releases/{release_id}", status_code=303)


@router.get("/{release_id}/artifacts/{name}")
def download(
    request: Request, release_id: ReleaseId, name: ArtifactName, caller: Reader, context: Services
) -> Response:
    """Download an artifact."""
    sent = request.headers
    conditions = (sent.get("if-none-match"), sent.get("range"), sent.get("if-range"))
    return api.get_artifact(release_id, name, caller, context, *conditions)


@router.get("/{release_id}/answers")
async def answer(
    request: Request,
    release_id: ReleaseId,
    caller: Analyst,
    context: Services,
    column: Annotated[list[str] | None, Query()] = None,
) -> Response:
    """Ask the released model about some columns."""
    chosen = column or []
    try:
        item = await run_in_threadpool(_item, context, release_id, chosen)
        question = validated(_QUESTION, {"workload": [item]})
        found = await api.answer(release_id, question, caller, context)
        values: dict[str, Any] = {"answers": found}
    except Exception as error:
        values = {"error": error}
    return await run_in_threadpool(
        _shown, request, release_id, caller, context, asked=chosen, **values
    )


@router.post("/{release_id}/samples")
async def sample(
    request: Request, release_id: ReleaseId, caller: Analyst, form: Posted, context: Services
) -> Response:
    """Download rows drawn from the released model."""
    try:
        wanted = validated(_SAMPLE, {"rows": number(form.text("rows"))})
        rows = await api.sample(release_id, wanted, caller, context)
    except Exception as error:
        return await run_in_threadpool(_shown, request, release_id, caller, context, error=error)
    rows.headers["Content-Disposition"] = f'attachment; filename="sample-{release_id}.csv"'
    return rows


def _shown(
    request: Request,
    release_id: UUID,
    caller: Caller,
    context: Context,
    *,
    asked: list[str] | None = None,
    answers: ModelAnswers | None = None,
    error: Exception | None = None,
) -> Response:
    release = api.show(release_id, caller, context)
    problem = None if error is None else explained(request, error)
    schema = _released_schema(context, release)
    released, damage = _released_answers(request, context, release)
    shown = problem or damage
    return page(
        request,
        "release.html",
        status=200 if shown is None else shown.status,
        problem=problem,
        damage=damage,
        release=release,
        is_over=release.state in FINAL_STATES,
        population=populations.show(release.population_id, caller, context),
        datasets=_dataset_names(caller, context),
        plots=plots.plots_of(released, schema),
        released=released[:MOST_LINES],
        columns=list(schema.sizes),
        can_ask=_can_ask(release, caller),
        can_resume="admin" in caller.scopes
        and is_resumable(release.state, (release.error or {}).get("type")),
        has_rows=release_form.entries()[release.mechanism["name"]].releases_rows,
        asked=asked or [],
        answers=None if answers is None else answers.items,
        answer_plot=_answer_plot(answers, schema),
        most_lines=MOST_LINES,
        most_sample_rows=MAX_SAMPLE_ROWS,
    )


def _released_answers(
    request: Request, context: Context, release: ReleaseView
) -> tuple[list[ModelAnswer], ProblemDocument | None]:
    """Return the first released answers, or the problem with their file; the page works without them."""
    if release.state != "succeeded":
        return [], None
    try:
        return plots.read_answers(context, release.id), None
    except ArtifactDamaged as error:
        return [], explained(request, error)


def _answer_plot(answers: ModelAnswers | None, schema: Schema) -> plots.Plot | None:
    """Bars, if the question was about one column."""
    found = [] if answers is None else plots.plots_of(answers.items, schema)
    return found[0] if len(found) == 1 else None


def _can_ask(release: ReleaseView, caller: Caller) -> bool:
    return "analyst" in caller.scopes and release.state == "succeeded"


def _item(context: Context, release_id: UUID, columns: list[str]) -> dict[str, Any]:
    """A question about columns, of the type that the release's mechanism can answer."""
    with context.transaction() as work:
        release = releases.get(work.session, release_id)
    is_linked = any(item["type"] in TWO_LEVEL_TYPES for item in release.spec["workload"])
    kind = "hierarchical" if is_linked else "marginals"
    return {"type": kind, "attributes": [columns] if columns else []}


def _released_schema(context: Context, release: ReleaseView) -> Schema:
    """The declarations of the released columns, which are public: every released file shows them."""
    with context.transaction() as work:
        declared = schema_of(dataset_rows.get(work.session, release.dataset_id)).linked
    return declared.project(release.columns)


def _editor(
    request: Request,
    caller: Caller,
    context: Context,
    form: Form,
    *,
    refused: ProblemDocument | None = None,
) -> Response:
    known = _datasets(caller, context)
    previewed = _previewed(request, caller, context, form)
    problem = refused or previewed.pop("problem")
    return page(
        request,
        "release_new.html",
        status=200 if refused is None else refused.status,
        **previewed | {"problem": problem, "refused": refused},
        form=form,
        items=release_form.items_of(form),
        item_types=release_form.item_types(),
        mechanism=release_form.mechanism_of(form),
        entries=list(release_form.entries().values()),
        formats=release_form.FORMATS,
        private=[each for each in known if each.visibility == "private"],
        public=[each for each in known if each.visibility == "public"],
        repeat_key=repeat_key(form, refused),
    )


def _previewed(request: Request, caller: Caller, context: Context, form: Form) -> dict[str, Any]:
    """The cost of the release, or why it would be refused."""
    body = release_form.body_of(form)
    values: dict[str, Any] = dict.fromkeys(("preview", "chart", "population", "problem"))
    values["body"] = body
    try:
        request_body = validated(release_form.PREVIEW, release_form.preview_of(form))
        preview = api.preview(request_body, caller, context)
        dataset = datasets.show(UUID(request_body.dataset_id), caller, context)
        # Only private datasets have previews, and they always have a population.
        assert dataset.population_id is not None
        population = populations.show(dataset.population_id, caller, context)
        values["population"] = population
        values["chart"] = chart_of(preview, population)
        values["preview"] = preview
    except Exception as error:
        values["problem"] = explained(request, error)
    return values


def _datasets(caller: Caller, context: Context) -> list[Any]:
    found = datasets.list_datasets(caller, context, Paging(limit=LARGEST_LIMIT)).items
    return [each for each in found if each.state != "deleted"]


def _dataset_names(caller: Caller, context: Context) -> dict[UUID, str]:
    """Names of datasets, for those who may see them."""
    if "curator" not in caller.scopes:
        return {}
    found = datasets.list_datasets(caller, context, Paging(limit=LARGEST_LIMIT)).items
    return {each.id: each.name for each in found}


def _populations(caller: Caller, context: Context) -> dict[UUID, Any]:
    found = populations.list_populations(caller, context, Paging(limit=LARGEST_LIMIT)).items
    return {each.id: each for each in found}
