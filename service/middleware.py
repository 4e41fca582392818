"""Middleware of every request: its id, log line, count and body limit, and unexpected errors."""

import time

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bind_contextvars, clear_contextvars
from structlog.typing import FilteringBoundLogger

from service.bodies import limited
from service.data.limiter import leave
from service.data.logging import choose_request_id, trace_of
from service.metrics import Metrics
from service.problems import unexpected

UNMATCHED = "unmatched"
# The status that proxies log for a client that disconnected.
CLIENT_CLOSED_REQUEST = 499


class RequestMiddleware:
    """The outermost layer: every request ends with a response and a log line."""

    def __init__(
        self, app: ASGIApp, *, log: FilteringBoundLogger, metrics: Metrics, body_seconds: float
    ) -> None:
        self._app = app
        self._log = log
        self._metrics = metrics
        self._body_seconds = body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        clear_contextvars()
        request_id = choose_request_id(_header(scope, b"x-request-id"))
        bind_contextvars(request_id=request_id)
        started = time.monotonic()
        answered = _Answer(send, request_id)
        try:
            bounded = limited(scope, receive, seconds=self._body_seconds)
            await self._serve(scope, bounded, answered)
        finally:
            leave(scope)
        # The route, not the path: a path may contain anything.
        route = getattr(scope.get("route"), "path", UNMATCHED)
        self._metrics.count_request(scope["method"], route, answered.status)
        self._log.info(
            "request",
            method=scope["method"],
            route=route,
            status=answered.status,
            key_id=scope.get("state", {}).get("key_id"),
            duration_ms=round(1000 * (time.monotonic() - started)),
        )

    async def _serve(self, scope: Scope, receive: Receive, answered: "_Answer") -> None:
        try:
            await self._app(scope, receive, answered)
        except ClientDisconnect:
            answered.status = answered.status or CLIENT_CLOSED_REQUEST
        except Exception as error:
            # Not re-raised: the server would log its message, which may contain anything.
            self._log.error(
                "unexpected_error", error_type=type(error).__name__, trace=trace_of(error)
            )
            if answered.status:
                # Part of the response was sent; closing the connection marks it as incomplete.
                raise ConnectionAbortedError from None
            await unexpected()(scope, receive, answered)


class _Answer:
    """Sends a response with the request's id, and remembers its status."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._request_id = request_id
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [
                *message.get("headers", []),
                (b"x-request-id", self._request_id.encode()),
            ]
        await self._send(message)


def _header(scope: Scope, name: bytes) -> str | None:
    for found, value in scope["headers"]:
        if found == name:
            return str(value.decode("latin-1"))
    return None
