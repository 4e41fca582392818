"""Requests to the service: patient with what can be repeated safely, and nothing else."""

import ipaddress
import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

import httpx

from scrim.errors import Problem, Unreachable, UnusableInput
from scrim.records import Record
from scrim.wire import Wire

AnyRecord = TypeVar("AnyRecord", bound=Record)

# A question to a released model may take the service half a minute.
TIMEOUT = httpx.Timeout(60.0, connect=5.0)
ATTEMPTS = 5
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 30.0

NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
# Refused at the door: nothing was done, so even what cannot be repeated may be sent again.
TOO_MANY_REQUESTS = 429
UNCERTAIN = frozenset({502, 503, 504})


def settings_for(url: str, key: str | None) -> dict[str, Any]:
    """How a wire reaches the service, and says who asks."""
    host = urlsplit(url).hostname
    if urlsplit(url).scheme not in {"http", "https"} or not host:
        raise UnusableInput(f"{url!r} is not an address such as https://scrim.example.org")
    return {
        "base_url": url.rstrip("/"),
        "headers": {"Authorization": f"Bearer {key}"} if key else {},
        "timeout": TIMEOUT,
        # A proxy cannot reach our own machine.
        "trust_env": not _is_loopback(host),
    }


class Transport:
    """Sends requests over a wire, repeats what may be repeated, and raises problems."""

    def __init__(self, wire: Wire, url: str) -> None:
        self.wire = wire
        self.url = url.rstrip("/")

    async def send(
        self, method: str, path: str, *, repeatable: bool = True, **options: Any
    ) -> httpx.Response:
        """The answer to a request, read to its end.

        `repeatable` says that sending it twice does no more than sending it once.
        """
        async with self.open(method, path, repeatable=repeatable, **options) as response:
            try:
                await self.wire.read(response)
            except httpx.TransportError as error:
                raise self._unreachable(error) from error
        return response

    @asynccontextmanager
    async def open(
        self, method: str, path: str, *, repeatable: bool = True, **options: Any
    ) -> AsyncIterator[httpx.Response]:
        """The answer to a request, to be read piece by piece."""
        response = await self._send_patiently(method, path, repeatable=repeatable, **options)
        try:
            if not response.is_success:
                await self.wire.read(response)
                raise Problem.of(response)
            yield response
        finally:
            await self.wire.end(response)

    async def get(self, path: str, kind: type[AnyRecord]) -> AnyRecord:
        """One thing."""
        return kind.model_validate((await self.send("GET", path)).json())

    async def post(self, path: str, kind: type[AnyRecord], **options: Any) -> AnyRecord:
        """What is made of a body, or becomes of a thing."""
        return kind.model_validate((await self.send("POST", path, **options)).json())

    async def pages(self, path: str, kind: type[AnyRecord]) -> AsyncGenerator[AnyRecord, None]:
        """Everything in a collection, page by page as it is needed."""
        params: dict[str, str] = {}
        while True:
            page = (await self.send("GET", path, params=params)).json()
            for item in page["items"]:
                yield kind.model_validate(item)
            if page["next"] is None:
                return
            params = {"cursor": page["next"]}

    async def _send_patiently(
        self, method: str, path: str, *, repeatable: bool, **options: Any
    ) -> httpx.Response:
        request = self.wire.request(method, path, **options)
        for attempt in range(1, ATTEMPTS + 1):
            is_last = attempt == ATTEMPTS
            try:
                response = await self.wire.send(request)
            except httpx.TransportError as error:
                if is_last or not (repeatable or isinstance(error, NEVER_SENT)):
                    raise self._unreachable(error) from error
                await self.wire.pause(_pause(attempt))
                continue
            if is_last or not _may_succeed_later(response, repeatable=repeatable):
                return response
            await self.wire.end(response)
            await self.wire.pause(_wanted_pause(response) or _pause(attempt))
        raise AssertionError("the last attempt returns or raises")

    def _unreachable(self, error: httpx.TransportError) -> Unreachable:
        return Unreachable(f"{self.url} does not answer ({type(error).__name__})")


def idempotent(key: str | None) -> dict[str, str]:
    """The header that makes a creating request repeatable; a fresh name where none is given."""
    return {"Idempotency-Key": key or str(uuid4())}


def _may_succeed_later(response: httpx.Response, *, repeatable: bool) -> bool:
    status = response.status_code
    return status == TOO_MANY_REQUESTS or (repeatable and status in UNCERTAIN)


def _wanted_pause(response: httpx.Response) -> float | None:
    """How long the service asks us to wait; it may also name a date, which we do not read."""
    wanted = response.headers.get("Retry-After", "")
    return min(float(wanted), LONGEST_PAUSE_SECONDS) if wanted.isdigit() else None


def _pause(attempt: int) -> float:
    """Twice as long after each attempt, and never in step with others."""
    return FIRST_PAUSE_SECONDS * 2.0 ** (attempt - 1) * random.uniform(0.5, 1.0)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
