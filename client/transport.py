"""Requests to the service: one connection pool, patient with what can be repeated safely."""

import ipaddress
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

import httpx

from client.errors import Problem, Unreachable, UnusableInput
from client.records import Record

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


class Transport:
    """Sends requests with a key, repeats what may be repeated, and raises problems."""

    def __init__(
        self,
        url: str,
        key: str | None,
        *,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        host = urlsplit(url).hostname
        if urlsplit(url).scheme not in {"http", "https"} or not host:
            raise UnusableInput(f"{url!r} is not an address such as https://scrim.example.org")
        self.url = url.rstrip("/")
        self._sleep = sleep
        self._http = httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=TIMEOUT,
            transport=transport,
            # A proxy cannot reach our own machine.
            trust_env=not _is_loopback(host),
        )

    def send(
        self, method: str, path: str, *, repeatable: bool = True, **options: Any
    ) -> httpx.Response:
        """The answer to a request, read to its end.

        `repeatable` says that sending it twice does no more than sending it once.
        """
        with self.open(method, path, repeatable=repeatable, **options) as response:
            try:
                response.read()
            except httpx.TransportError as error:
                raise self._unreachable(error) from error
        return response

    @contextmanager
    def open(
        self, method: str, path: str, *, repeatable: bool = True, **options: Any
    ) -> Iterator[httpx.Response]:
        """The answer to a request, to be read piece by piece."""
        response = self._send_patiently(method, path, repeatable=repeatable, **options)
        try:
            if not response.is_success:
                response.read()
                raise Problem.of(response)
            yield response
        finally:
            response.close()

    def get(self, path: str, kind: type[AnyRecord], **params: Any) -> AnyRecord:
        """One thing."""
        return kind.model_validate(self.send("GET", path, params=params).json())

    def pages(self, path: str, kind: type[AnyRecord]) -> Iterator[AnyRecord]:
        """Everything in a collection, page by page as it is needed."""
        params: dict[str, str] = {}
        while True:
            page = self.send("GET", path, params=params).json()
            yield from map(kind.model_validate, page["items"])
            if page["next"] is None:
                return
            params = {"cursor": page["next"]}

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()

    def _send_patiently(
        self, method: str, path: str, *, repeatable: bool, **options: Any
    ) -> httpx.Response:
        request = self._http.build_request(method, path, **options)
        for attempt in range(1, ATTEMPTS + 1):
            is_last = attempt == ATTEMPTS
            try:
                response = self._http.send(request, stream=True)
            except httpx.TransportError as error:
                if is_last or not (repeatable or isinstance(error, NEVER_SENT)):
                    raise self._unreachable(error) from error
                self._sleep(_pause(attempt))
                continue
            if is_last or not _may_succeed_later(response, repeatable=repeatable):
                return response
            response.close()
            self._sleep(_wanted_pause(response) or _pause(attempt))
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
