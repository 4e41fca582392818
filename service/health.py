"""/healthz, /readyz and /metrics, for operators."""

import asyncio
from collections.abc import Callable
from functools import cache
from typing import Literal

from alembic.script import ScriptDirectory
from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import text

from service.data.context import Context
from service.data.db import scripts_folder
from service.data.errors import FieldProblem, NotReady
from service.data.views import View
from service.dependencies import Services
from service.keys.access import Admin
from service.metrics import METRICS_MEDIA_TYPE
from service.problems import documented
from service.route import ApiRoute

router = APIRouter(route_class=ApiRoute, tags=["operation"])


class Health(View):
    """The service answers."""

    status: Literal["ok"] = "ok"
    """Always `ok`."""


class Readiness(View):
    """Everything the service depends on answers."""

    status: Literal["ready"] = "ready"
    """Always `ready`."""
    checks: list[str]
    """What was checked."""


@router.get("/healthz", summary="Is the process alive?")
async def healthz() -> Health:
    """Whether the process is alive. Needs no key."""
    return Health()


class SharedCheck:
    """Runs a check once for all callers that arrive while it runs.

    Anyone may ask whether the service is ready. A check takes a thread and a connection, and writes to the
    storage, so their number must not follow the number of requests.
    """

    def __init__(self) -> None:
        self._running: asyncio.Task[list[str]] | None = None

    async def run(self, check: Callable[[], list[str]]) -> list[str]:
        """The result of the check that is running, or of this one."""
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(run_in_threadpool(check))
        # A caller that leaves must not cancel the check of the others.
        return await asyncio.shield(self._running)


@router.get("/readyz", summary="Can requests be served?")
async def readyz(context: Services, request: Request) -> Readiness:
    """Whether requests can be served. Needs no key."""
    shared: SharedCheck = request.app.state.readiness
    checks = _checks(context)

    def check() -> list[str]:
        return [name for name, each in checks.items() if not _passes(context, name, each)]

    failed = await shared.run(check)
    if failed:
        raise NotReady(
            f"these checks failed: {', '.join(failed)}",
            errors=[
                FieldProblem(loc=[name], message=f"{name} failed; see the log") for name in failed
            ],
        )
    return Readiness(checks=list(checks))


_TEXT = {
    "content": {METRICS_MEDIA_TYPE: {"schema": {"type": "string"}}},
    "description": "The numbers",
}


@router.get(
    "/metrics",
    summary="Numbers for Prometheus",
    response_class=Response,
    responses={200: _TEXT, **documented(401, 403, 429)},
)
def metrics(caller: Admin, context: Services, request: Request) -> Response:
    """Requests, queues, releases and present budgets, in the Prometheus text format."""
    return Response(request.app.state.metrics.render(context), media_type=METRICS_MEDIA_TYPE)


def _checks(context: Context) -> dict[str, Callable[[], object]]:
    return {
        "database": lambda: _migrated_revision(context),
        "migrations": lambda: _require_head(context),
        "ledger": context.check_anchor,
        "broker": context.broker.ping,
        "storage": context.storage.check,
    }


def _passes(context: Context, name: str, check: Callable[[], object]) -> bool:
    try:
        check()
    except Exception as error:
        context.log.warning("check_failed", check=name, error_type=type(error).__name__)
        return False
    return True


def _migrated_revision(context: Context) -> str:
    with context.transaction() as work:
        return str(work.session.scalar(text("SELECT version_num FROM alembic_version")))


def _require_head(context: Context) -> None:
    if _migrated_revision(context) != _head():
        raise RuntimeError("the database is not at the revision of this program")


@cache
def _head() -> str | None:
    return ScriptDirectory(str(scripts_folder())).get_current_head()
