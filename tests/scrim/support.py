"""A scripted service that answers like the real one."""

import json
from collections.abc import Callable, Iterator
from inspect import isasyncgen
from typing import Any

import anyio
import httpx

from scrim import AsyncClient, Client

Handler = Callable[[httpx.Request], httpx.Response]

POPULATION: dict[str, Any] = {
    "id": "p1",
    "name": "people",
    "unit": "row",
    "relation": "add_remove",
    "delta": 1e-9,
    "budget": {
        "rho_cap": 1.0,
        "rho_spent": 0.25,
        "rho_reserved": 0.0,
        "rho_left": 0.75,
        "epsilon_spent": 2.0,
        "delta": 1e-9,
    },
}
DATASET: dict[str, Any] = {
    "id": "d1",
    "name": "table",
    "visibility": "private",
    "state": "ready",
    "population_id": "p1",
    "reason": None,
}
RELEASE: dict[str, Any] = {
    "id": "r1",
    "state": "succeeded",
    "progress": {"done": 3, "total": 3},
    "rho_spent": 0.1,
    "error": None,
    "artifacts": [],
    "published": True,
}
SPEC: dict[str, Any] = {
    "workload": [{"type": "marginals", "k": 1}],
    "mechanism": {"name": "gaussian"},
    "budget": {"epsilon": 1.0},
}
SCHEMA: dict[str, Any] = {
    "columns": [{"name": "sex", "type": "categorical", "values": ["F", "M"]}],
}


TWO_LEVEL: dict[str, Any] = {
    "groups": {
        "key": "hid",
        "columns": [{"name": "town", "type": "categorical", "values": ["a", "b"]}],
    },
    "individuals": {"group_key": "hid", **SCHEMA},
    "max_group_size": 4,
}


class Script:
    """Returns the given responses in order, and records the requests."""

    is_asynchronous = False
    """Whether its client is asynchronous; see the fixture `both_ways`."""

    def __init__(self, *steps: httpx.Response | Exception | Handler) -> None:
        self._steps: Iterator[httpx.Response | Exception | Handler] = iter(steps)
        self.requests: list[httpx.Request] = []
        self.pauses: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """The next answer; the test fails if there is none."""
        request.read()
        self.requests.append(request)
        step = next(self._steps)
        if isinstance(step, Exception):
            raise step
        if not isinstance(step, httpx.Response):
            return step(request)
        # A new response each time: httpx ties a response to the client that has read it.
        return httpx.Response(step.status_code, headers=step.headers, content=step.content)

    def client(self, key: str | None = "secret") -> Any:
        """A blocking client of this service, without pauses."""
        if self.is_asynchronous:
            return Driven(self.async_client(key))
        transport = httpx.MockTransport(self)
        return Client("http://scrim.test", key, transport=transport, sleep=self.pauses.append)

    def async_client(self, key: str | None = "secret") -> AsyncClient:
        """An asynchronous client of this service, without pauses."""

        async def pause(seconds: float) -> None:
            self.pauses.append(seconds)

        transport = httpx.MockTransport(self)
        return AsyncClient("http://scrim.test", key, transport=transport, sleep=pause)

    @property
    def bodies(self) -> list[Any]:
        """The JSON bodies of the requests."""
        return [json.loads(request.content) for request in self.requests]


class Driven:
    """An asynchronous client whose calls run to completion, so that one test covers both kinds."""

    def __init__(self, thing: Any) -> None:
        self._thing = thing

    def __getattr__(self, name: str) -> Any:
        """A resource, or a method that is run to its end."""
        found = getattr(self._thing, name)
        return self._driven(found) if callable(found) else Driven(found)

    def _driven(self, method: Callable[..., Any]) -> Callable[..., Any]:
        async def finish(*args: Any, **options: Any) -> Any:
            started = method(*args, **options)
            if isasyncgen(started):
                return iter([each async for each in started])
            return await started

        return lambda *args, **options: anyio.run(lambda: finish(*args, **options))


def answer(content: Any, status: int = 200) -> httpx.Response:
    """A JSON answer."""
    return httpx.Response(status, json=content)


def page(*items: Any, following: str | None = None) -> httpx.Response:
    """A page of a collection."""
    return answer({"items": list(items), "next": following})


def problem(status: int, kind: str, detail: str = "no", **fields: Any) -> httpx.Response:
    """A problem document."""
    content = {
        "type": f"/problems/{kind}",
        "title": kind.title(),
        "status": status,
        "detail": detail,
        "errors": [],
        "request_id": "abc",
    }
    return httpx.Response(
        status, json=content | fields, headers={"Content-Type": "application/problem+json"}
    )


def events(*written: tuple[int, str, dict[str, Any]]) -> httpx.Response:
    """A stream of events."""
    text = "".join(
        f"id: {number}\nevent: {kind}\ndata: {json.dumps(data)}\n\n"
        for number, kind, data in written
    )
    return httpx.Response(
        200, text=": hello\n\n" + text, headers={"Content-Type": "text/event-stream"}
    )
