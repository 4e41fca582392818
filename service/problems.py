"""The one place where errors become problem+json answers."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import compile_path
from structlog.contextvars import get_contextvars

from scrim.spec.errors import SpecError
from scrim.spec.messages import describe
from service.data.errors import FieldProblem, ProblemDocument, ServiceError
from service.data.ledger import errors as ledger

PROBLEM_MEDIA_TYPE = "application/problem+json"

# Any other refusal of the ledger is an internal error.
_LEDGER: dict[type[ledger.LedgerError], tuple[int, str, str]] = {
    ledger.BudgetExhausted: (409, "budget-exhausted", "Budget exhausted"),
    ledger.LedgerConflict: (409, "conflict", "Conflict"),
    ledger.LeaseHeld: (409, "conflict", "Conflict"),
    ledger.Closed: (409, "conflict", "Conflict"),
    ledger.UnknownEntry: (404, "not-found", "Not found"),
    ledger.InvalidAmount: (422, "invalid", "Invalid request"),
    ledger.AnchorError: (503, "not-ready", "Not ready"),
}
_NAMES = {404: "not-found", 405: "method-not-allowed", 408: "too-slow", 413: "too-large"}
# Maximum number of errors of one request that a response lists.
_MOST_ERRORS = 100
_WHEN = {
    401: "The key is missing, unknown, expired or revoked",
    403: "The key's scopes do not cover the call",
    404: "It does not exist, or your key may not see it",
    409: "The current state does not allow the call; `type` says why",
    413: "The body is too large",
    415: "The body's format is not supported",
    416: "The range lies outside the artifact",
    422: "The request is invalid or cannot be carried out",
    429: "Too many requests with this key; `Retry-After` says how long to wait",
    500: "Internal error, or a damaged artifact; `type` says which",
    503: "A dependency of the service does not respond",
}


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe these errors in the OpenAPI document."""
    return {status: {"model": ProblemDocument, "description": _WHEN[status]} for status in statuses}


def answer(
    status: int,
    kind: str,
    title: str,
    detail: str,
    *,
    errors: list[FieldProblem] | None = None,
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    """A problem as an HTTP response."""
    problem = ProblemDocument(
        type=f"/problems/{kind}",
        title=title,
        status=status,
        detail=detail,
        errors=errors or [],
        request_id=get_contextvars().get("request_id", ""),
    )
    return JSONResponse(
        problem.model_dump(mode="json"),
        status_code=status,
        headers=headers,
        media_type=PROBLEM_MEDIA_TYPE,
    )


def unexpected() -> JSONResponse:
    """The response to an internal error, without any details."""
    return answer(
        500,
        "internal",
        "Internal error",
        "an internal error occurred and was logged; report the request id",
    )


def install_handlers(app: FastAPI) -> None:
    """Turn every expected error into a problem."""
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)


def answer_to(request: Request, error: Exception) -> JSONResponse:
    """The response to an expected error; any other is re-raised."""
    for kind, handler in _HANDLERS.items():
        if isinstance(error, kind):
            return handler(request, error)
    raise error


def _on_service_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ServiceError)
    if error.is_alarm:
        request.app.state.metrics.count_alarm(error.type)
    return answer(
        error.status,
        error.type,
        error.title,
        error.detail,
        errors=error.errors,
        headers=error.headers,
    )


def _on_spec_error(_request: Request, error: Exception) -> JSONResponse:
    return answer(422, "cannot-work", "The request cannot be carried out", str(error))


def _on_ledger_error(_request: Request, error: Exception) -> JSONResponse:
    for kind in type(error).__mro__:
        if kind in _LEDGER:
            return answer(*_LEDGER[kind], str(error))
    raise error


def _on_invalid_request(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    faults = error.errors()
    found = [_field_error(each, error.body) for each in faults[:_MOST_ERRORS]]
    others = len(faults) - 1
    detail = found[0].message
    if others:
        detail += f" (and {others} more {'error' if others == 1 else 'errors'}, listed in errors)"
    return answer(422, "invalid", "Invalid request", detail, errors=found)


def _field_error(fault: dict[str, Any], body: Any) -> FieldProblem:
    loc = [part if isinstance(part, int) else str(part) for part in fault["loc"]]
    where, *rest = loc
    # Outside the body there are no unions: the path of an error is a name.
    content = body if where == "body" else dict.fromkeys(rest)
    message = describe({**fault, "loc": rest}, content, whole="the body")
    return FieldProblem(loc=loc, message=message)


def _on_http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    if error.status_code == 400:
        # How the framework reports a body that is not text.
        return answer(
            422, "invalid", "Invalid request", "the body cannot be read; send JSON in UTF-8"
        )
    headers = dict(error.headers or {})
    if error.status_code == 405:
        headers["Allow"] = ", ".join(_allowed_methods(request))
    title = HTTPStatus(error.status_code).phrase
    # Starlette's own errors repeat the title as their detail.
    detail = (
        error.detail
        if error.detail != title
        else f"{title.lower()}; see /docs for the available calls"
    )
    return answer(
        error.status_code,
        _NAMES.get(error.status_code, "invalid"),
        title,
        detail,
        headers=headers,
    )


def _allowed_methods(request: Request) -> list[str]:
    """All methods of this path; the framework lists only those of the first matching route."""
    paths: dict[str, dict[str, Any]] = request.app.openapi()["paths"]
    asked = request.scope["path"]
    fitting = [asked] if asked in paths else [p for p in paths if compile_path(p)[0].match(asked)]
    return sorted({method.upper() for path in fitting for method in paths[path]})


_HANDLERS: dict[type[Exception], Callable[[Request, Exception], JSONResponse]] = {
    ServiceError: _on_service_error,
    SpecError: _on_spec_error,
    ledger.LedgerError: _on_ledger_error,
    RequestValidationError: _on_invalid_request,
    HTTPException: _on_http_error,
}
