"""/healthz, /readyz and /metrics, for those who operate the service."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Literal

from alembic.script import ScriptDirectory
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel
from sqlalchemy import text

from service.context import Context, Services
from service.errors import FieldError, NotReady
from service.keys.access import AnyKey
from service.metrics import MEDIA_TYPE

router = APIRouter(tags=["operation"])

_MIGRATIONS = Path(__file__).resolve().parents[1] / "migrations"


class Health(BaseModel):
    """The service answers."""

    status: Literal["ok"] = "ok"


class Readiness(BaseModel):
    """Everything the service depends on answers."""

    status: Literal["ready"] = "ready"
    checks: list[str]
    """What was checked."""


@router.get("/healthz")
def healthz() -> Health:
    """Whether the process is alive. Needs no key."""
    return Health()


@router.get("/readyz")
def readyz(context: Services) -> Readiness:
    """Whether requests can be served. Needs no key."""
    checks = _checks(context)
    failed = [name for name, check in checks.items() if not _passes(context, name, check)]
    if failed:
        raise NotReady(
            f"these do not answer as they should: {', '.join(failed)}",
            errors=[FieldError(loc=[name], message="failed; see the log") for name in failed],
        )
    return Readiness(checks=list(checks))


@router.get("/metrics", response_class=Response, responses={200: {"content": {MEDIA_TYPE: {}}}})
def metrics(caller: AnyKey, context: Services, request: Request) -> Response:
    """Requests, queues, releases and budgets, in the Prometheus text format."""
    return Response(request.app.state.metrics.render(context), media_type=MEDIA_TYPE)


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
    return ScriptDirectory(str(_MIGRATIONS)).get_current_head()
