"""/console and /docs: the pages, their static files, and the redirect to them."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from starlette.exceptions import HTTPException

from service.console import (
    datasets,
    keys,
    populations,
    reference,
    release_form,
    releases,
    schemas,
    sign_in,
)
from service.console.access import AnyVisitor
from service.console.pages import STATIC_MEDIA_TYPES, environment, static_files
from service.console.route import ConsoleRoute
from service.data.errors import NotFound

# Pages are no part of the API's contract.
router = APIRouter(include_in_schema=False)
home = APIRouter(prefix="/console", route_class=ConsoleRoute)
elsewhere = APIRouter(prefix="/console", route_class=ConsoleRoute)

_A_YEAR = "public, max-age=31536000, immutable"


@router.get("/")
def welcome(request: Request) -> Response:
    """Redirect browsers to the console; other clients get 404."""
    if "text/html" not in request.headers.get("accept", ""):
        raise HTTPException(404)
    return RedirectResponse("/console", status_code=303)


@home.get("")
def begin(caller: AnyVisitor) -> Response:
    """Redirect to the start page of the visitor."""
    place = "populations" if caller.scopes == {"admin"} else "releases"
    return RedirectResponse(f"/console/{place}", status_code=303)


@home.get("/static/{name}")
def static(name: str) -> Response:
    """A file that pages refer to. Its address changes with its content."""
    content = static_files().get(name)
    if content is None:
        raise NotFound("there is no such file")
    ending = name[name.rindex(".") :]
    return Response(
        content, media_type=STATIC_MEDIA_TYPES[ending], headers={"Cache-Control": _A_YEAR}
    )


@elsewhere.get("/{rest:path}")
def nothing(rest: str, caller: AnyVisitor) -> Response:
    """Unknown console path: 404."""
    raise NotFound("there is no such page")


PARTS = (
    home,
    reference.router,
    sign_in.router,
    populations.router,
    datasets.router,
    schemas.router,
    releases.router,
    keys.router,
    # Last, because it matches every path.
    elsewhere,
)
for part in PARTS:
    router.include_router(part)


def prepare() -> None:
    """Compile templates and forms at startup, so that the first visitors do not wait."""
    for name in environment().list_templates():
        environment().get_template(name)
    static_files()
    release_form.entries()
    release_form.item_types()
