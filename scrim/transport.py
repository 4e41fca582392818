"""Requests to the service; only requests that can be repeated safely are retried."""

import ipaddress
import random
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
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
"""How often a request that can be repeated is sent at most."""
FIRST_PAUSE_SECONDS = 0.2
"""Pause before the second attempt; it doubles for each further one."""
LONGEST_PAUSE_SECONDS = 30.0
"""Longest pause that the service may ask for."""

NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
# Refused before processing, so even a request that is not repeatable may be sent again.
TOO_MANY_REQUESTS = 429
UNCERTAIN = frozenset({502, 503, 504})


def settings_for(url: str, key: str | None) -> dict[str, Any]:
    """Settings of the HTTP client: address, key and timeouts."""
    host = urlsplit(url).hostname
    if urlsplit(url).scheme not in {"http", "https"} or not host:
        raise UnusableInput(f"{url!r} is not an address such as https://scrim.example.org")
    return {
        "base_url": url.rstrip("/"),
        "headers": {"Authorization": f"Bearer {key}"} if key else {},
        "timeout": TIMEOUT,
        # A proxy cannot reach this machine.
        "trust_env": not _is_loopback(host),
    }


class Transport:
    """Sends requests over a wire, retries repeatable ones, and raises problems."""

    def __init__(self, wire: Wire, url: str) -> None:
        self.wire = wire
        self.url = url.rstrip("/")

    async def send(
        self, method: str, path: str, *, repeatable: bool = True, **options: Any
    ) -> httpx.Response:
        """Send a request and read the whole response.

        `repeatable`: sending it twice has the same effect as sending it once.
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
        """Send a request; the response is read in pieces."""
        response = await self._send_patiently(method, path, repeatable=repeatable, **options)
        try:
            if not response.is_success:
                await self.wire.read(response)
                raise Problem.of(response)
            yield response
        finally:
            await self.wire.end(response)

    async def get(self, path: str, kind: type[AnyRecord]) -> AnyRecord:
        """Get one resource."""
        return kind.model_validate((await self.send("GET", path)).json())

    async def post(self, path: str, kind: type[AnyRecord], **options: Any) -> AnyRecord:
        """Create or change a resource."""
        return kind.model_validate((await self.send("POST", path, **options)).json())

    async def pages(
        self, path: str, kind: type[AnyRecord], chosen: Mapping[str, str] | None = None
    ) -> AsyncGenerator[AnyRecord, None]:
        """Yield all items of a collection, or the chosen ones; pages are fetched as needed."""
        params = dict(chosen or {})
        while True:
            page = (await self.send("GET", path, params=params)).json()
            for item in page["items"]:
                yield kind.model_validate(item)
            if page["next"] is None:
                return
            params["cursor"] = page["next"]

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
    """The header that makes a creating request repeatable; by default with a new random key."""
    return {"Idempotency-Key": key or str(uuid4())}


def _may_succeed_later(response: httpx.Response, *, repeatable: bool) -> bool:
    status = response.status_code
    return status == TOO_MANY_REQUESTS or (repeatable and status in UNCERTAIN)


def _wanted_pause(response: httpx.Response) -> float | None:
    """The seconds to wait that the service asks for; a date in this header is ignored."""
    wanted = response.headers.get("Retry-After", "")
    return min(float(wanted), LONGEST_PAUSE_SECONDS) if wanted.isdigit() else None


def _pause(attempt: int) -> float:
    """The pause before the next attempt: doubled each time, with random jitter."""
    return FIRST_PAUSE_SECONDS * 2.0 ** (attempt - 1) * random.uniform(0.5, 1.0)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
