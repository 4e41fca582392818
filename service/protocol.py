"""HTTP connections with limits on their number, their headers and unread bodies."""

from asyncio import TimerHandle, Transport
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.bodies import KIBIBYTE, MEBIBYTE
from service.problems import PROBLEM_MEDIA_TYPE, answer

MAX_HEADER_BYTES = 64 * KIBIBYTE
"""Maximum bytes of a request's first line and headers, rounded up to what one read returns."""


MAX_UNREAD_BYTES = 32 * MEBIBYTE
"""Maximum bytes of a body that are discarded after its request was answered, so that the caller can
read the response and reuse the connection."""


@dataclass(frozen=True)
class Connections:
    """The limits of one server, and its connections that wait for a request, the oldest first."""

    header_seconds: float
    most: int
    waiting: dict["LimitedProtocol", None] = field(default_factory=dict)


class LimitedProtocol(HttpToolsProtocol):
    """A connection that must send complete headers in time, and may be closed when there are too many.

    A connection waits while it has no request to be answered. When a new one exceeds the limit, the
    connection that has waited longest is closed, so that half-sent headers do not block other callers.
    """

    def __init__(self, *args: Any, limits: Connections, **options: Any) -> None:
        super().__init__(*args, **options)
        self._limits = limits
        self._due: TimerHandle | None = None
        self._unfinished_bytes = 0
        self._ended_messages = 0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Add the connection, and close the one that has waited longest if there are too many."""
        super().connection_made(transport)
        self._limits.waiting[self] = None
        self._expect_headers()
        if len(self.connections) > self._limits.most:
            longest = next(iter(self._limits.waiting))
            if longest is self:
                self._refuse(503, "not-ready", "the service has too many connections; try again")
            else:
                longest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes; refuse headers that are too long and unread bodies that are too large."""
        ended = self._ended_messages
        super().data_received(data)
        if self not in self._limits.waiting or ended != self._ended_messages:
            return
        if self._due is None:
            self._expect_headers()
        self._unfinished_bytes += len(data)
        most = MAX_UNREAD_BYTES if self._has_unread_body() else MAX_HEADER_BYTES
        if self._unfinished_bytes > most:
            self._refuse(431, "too-large", f"headers may have at most {MAX_HEADER_BYTES:,} bytes")

    def on_headers_complete(self) -> None:
        """Begin a request."""
        self._stop_waiting()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """End the body of a request, which may have been answered already."""
        self._ended_messages += 1
        super().on_message_complete()
        if self in self._limits.waiting:
            # The request was answered already, so the connection is now idle.
            self.cycle.more_body = False
            self._stop_waiting()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )
            self._wait()

    def on_response_complete(self) -> None:
        """Wait for the rest of this request, and for the next one."""
        super().on_response_complete()
        if not self.transport.is_closing() and self.cycle.response_complete:
            self._wait()

    def _wait(self) -> None:
        self._unfinished_bytes = 0
        self._limits.waiting[self] = None
        # If the request is complete, the keep-alive timeout applies until the next byte arrives.
        if self._has_unread_body():
            self._expect_headers()

    def _has_unread_body(self) -> bool:
        """Whether the last request was answered before its body ended."""
        return self.cycle is not None and self.cycle.more_body

    def _expect_headers(self) -> None:
        self._due = self.loop.call_later(
            self._limits.header_seconds, self._refuse, 408, "too-slow", "the headers are incomplete"
        )

    def _stop_waiting(self) -> None:
        self._limits.waiting.pop(self, None)
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _refuse(self, status: int, kind: str, detail: str) -> None:
        """Close the connection, with a problem as the answer if a request has begun."""
        self._stop_waiting()
        if self.transport.is_closing():
            return
        if not self._has_unread_body():
            title = HTTPStatus(status).phrase
            body = bytes(answer(status, kind, title, detail).body)
            head = (
                f"HTTP/1.1 {status} {title}\r\nContent-Type: {PROBLEM_MEDIA_TYPE}\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self.transport.close()
