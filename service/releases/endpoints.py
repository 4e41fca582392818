"""/v1/releases and /v1/mechanisms"""

from functools import cache
from typing import Annotated, cast
from uuid import UUID

from fastapi import APIRouter, Body, Depends, Header, Path, Request, Response
from fastapi.responses import StreamingResponse

from scrim.spec.catalogue import CatalogueEntry, catalogue
from scrim.spec.preview import PreviewRequest
from scrim.spec.question import Question, SampleRequest
from scrim.spec.release import ReleaseRequest
from service.bodies import MEBIBYTE
from service.data import releases
from service.data.pagination import Page
from service.dependencies import Pages, RequiredKey, Services, attempt
from service.keys.access import Admin, Analyst, AnyKey, Curator, Reader
from service.problems import documented
from service.releases import events, previews, questions, service
from service.releases.cancellation import cancel as cancel_release
from service.releases.downloads import Conditions, download
from service.releases.preview_schemas import PREVIEW_EXAMPLE, PreviewView
from service.releases.resumption import resume as resume_release
from service.releases.schemas import EXAMPLE, ModelAnswers, ReleaseView
from service.releases.turns import planning_turn
from service.route import ApiRoute


class ReleaseRoute(ApiRoute):
    """A route that reads workloads: a MiB holds more than 10,000 explicit queries."""

    body_bytes = MEBIBYTE


router = APIRouter(prefix="/v1/releases", route_class=ReleaseRoute, tags=["releases"])
mechanisms = APIRouter(prefix="/v1/mechanisms", route_class=ApiRoute, tags=["mechanisms"])

ReleaseId = Annotated[UUID, Path(description="The release's id.")]
ReleaseBody = Annotated[ReleaseRequest, Body(examples=[EXAMPLE])]
PreviewBody = Annotated[PreviewRequest, Body(examples=[PREVIEW_EXAMPLE])]
ArtifactName = Annotated[
    str,
    Path(
        pattern=r"^[a-z0-9_.-]{1,100}$",
        examples=["synthetic.csv"],
        description="A name listed in the release's `artifacts`.",
    ),
]


async def current_feed(request: Request) -> events.EventFeed:
    """The event feed of the application that serves this request."""
    return cast(events.EventFeed, request.app.state.feed)


Feed = Annotated[events.EventFeed, Depends(current_feed)]

_BYTES = {"content": {"*/*": {}}, "description": "The artifact's bytes"}
_STREAM = {"content": {events.EVENTS_MEDIA_TYPE: {}}, "description": "Server-sent events"}
_CSV = {"content": {"text/csv": {}}, "description": "The rows"}


@mechanisms.get("", summary="List mechanisms")
def list_mechanisms(caller: AnyKey) -> Page[CatalogueEntry]:
    """Every mechanism that a release may name, with its parameters as JSON Schema."""
    return _mechanisms()


@cache
def _mechanisms() -> Page[CatalogueEntry]:
    return Page(items=catalogue(), next=None)


@router.post("/preview", summary="Preview a release", dependencies=[Depends(planning_turn)])
def preview(body: PreviewBody, caller: Curator, context: Services) -> PreviewView:
    """The cost and the expected accuracy of a release. Uses neither data nor budget."""
    with context.transaction() as work:
        return previews.preview(
            work.session, body, memory_bytes=context.settings.worker_memory_bytes
        )


@router.post("", status_code=202, summary="Queue a release", dependencies=[Depends(planning_turn)])
def create(
    body: ReleaseBody,
    caller: Curator,
    context: Services,
    request: Request,
    response: Response,
    idempotency_key: RequiredKey,
) -> ReleaseView:
    """Queue a release. Its whole budget is reserved at once; the unspent part is returned.

    Repeat the request with the same Idempotency-Key, and you get the same release.
    """
    with context.transaction() as work:
        tried = attempt(caller, request, idempotency_key, body)
        view = service.create(work, body, tried, context.task_queue, settings=context.settings)
    response.headers["Location"] = f"/v1/releases/{view.id}"
    return view


@router.get("", summary="List releases")
def list_releases(caller: Reader, context: Services, paging: Pages) -> Page[ReleaseView]:
    """All releases, newest first; for an analyst, those that are published and have succeeded."""
    with context.transaction() as work:
        return service.list_page(work.session, paging, caller)


@router.get("/{release_id}", summary="Show a release")
def show(release_id: ReleaseId, caller: Reader, context: Services) -> ReleaseView:
    """A release: its state, progress, spending and artifacts."""
    with context.transaction() as work:
        return service.show(work.session, release_id, caller)


@router.get(
    "/{release_id}/events",
    summary="Follow a release",
    response_class=StreamingResponse,
    responses={200: _STREAM},
)
def watch(
    release_id: ReleaseId,
    caller: Reader,
    context: Services,
    feed: Feed,
    last_event_id: Annotated[
        int, Header(ge=0, lt=2**63, description="Number of the last event that you received.")
    ] = 0,
) -> Response:
    """Follow a release: events `state` and `progress`, until it ends.

    An analyst gets one event, the final `state`.
    """
    with context.transaction() as work:
        release = service.find_visible(work.session, release_id, caller)
    if not caller.is_curator:
        return events.final_event(release, after=last_event_id)
    return events.EventStream(feed, release_id, key_id=caller.key_id, after=last_event_id)


@router.post("/{release_id}/cancel", summary="Cancel a release")
def cancel(release_id: ReleaseId, caller: Curator, context: Services) -> ReleaseView:
    """Cancel a release; its unspent budget returns to the population.

    If a worker is running it, `cancel_requested` is set, and the job stops within seconds.
    """
    with context.transaction() as work:
        cancel_release(work.session, release_id)
        return service.view_of(work.session, release_id)


@router.post("/{release_id}/resume", summary="Resume a failed release")
def resume(release_id: ReleaseId, caller: Admin, context: Services) -> ReleaseView:
    """Resume a release that failed through a crash, lack of memory or a time limit.

    It continues from its journal: what it spent is not charged again. Its unspent budget is
    reserved again, if the population has that much left.
    """
    with context.transaction() as work:
        resume_release(work, release_id, context.task_queue)
        return service.shown_to(caller, service.view_of(work.session, release_id))


@router.post("/{release_id}/publish", summary="Publish a release")
def publish(release_id: ReleaseId, caller: Curator, context: Services) -> ReleaseView:
    """Make a release visible to analysts: at once, or as soon as it has succeeded."""
    with context.transaction() as work:
        return service.publish(work.session, release_id)


@router.get(
    "/{release_id}/artifacts/{name}",
    summary="Download an artifact",
    response_class=StreamingResponse,
    responses={
        200: _BYTES,
        206: _BYTES,
        304: {"description": "The artifact matches one of the caller's ETags"},
        **documented(416, 500),
    },
)
def get_artifact(
    release_id: ReleaseId,
    name: ArtifactName,
    caller: Reader,
    context: Services,
    if_none_match: Annotated[
        str | None, Header(description="ETags of your copies; 304 if one of them is current.")
    ] = None,
    range_: Annotated[
        str | None, Header(alias="Range", description="One range of bytes, such as `bytes=0-99`.")
    ] = None,
    if_range: Annotated[
        str | None,
        Header(description="An ETag: the range is sent only if the artifact still has it."),
    ] = None,
) -> Response:
    """Download an artifact, whole or in part."""
    with context.transaction() as work:
        service.find_visible(work.session, release_id, caller)
        artifact = releases.artifact(work.session, release_id, name)
    return download(context, artifact, Conditions(if_none_match, range_, if_range))


@router.post("/{release_id}/answers", summary="Ask a released model", responses=documented(500))
async def answer(
    release_id: ReleaseId, body: Question, caller: Analyst, context: Services
) -> ModelAnswers:
    """Ask the released model. It costs no budget."""
    return await questions.answer(context, release_id, caller, body)


@router.post(
    "/{release_id}/samples",
    summary="Draw rows from a released model",
    response_class=Response,
    responses={200: _CSV, **documented(500)},
)
async def sample(
    release_id: ReleaseId, body: SampleRequest, caller: Analyst, context: Services
) -> Response:
    """Draw rows from the released model, as CSV. It costs no budget."""
    rows = await questions.sample(context, release_id, caller, body)
    return Response(rows, media_type="text/csv")
