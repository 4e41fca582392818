"""Many event streams: one query for all of them, and a limit on their number."""

import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

import httpx
import pytest
from sqlalchemy import event

from service.data import progress
from service.data.errors import TooManyStreams
from service.embedded import wait_until
from service.releases.events import EventFeed

from .support import Api, problem

STREAMS = 8
PATIENCE = 30.0


@contextmanager
def looks(api: Api) -> Iterator[list[frozenset[UUID]]]:
    """The releases of each query for events, as sent to the database."""
    found: list[frozenset[UUID]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if "FROM release_event" in statement and "unnest" in statement:
            found.append(frozenset(parameters["ids"]))

    event.listen(api.context.engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(api.context.engine, "before_cursor_execute", note)


def opened(stack: ExitStack, client: httpx.Client, release: str) -> Iterator[str]:
    """The lines of a stream that has begun."""
    answer = stack.enter_context(client.stream("GET", f"/v1/releases/{release}/events"))
    assert answer.status_code == 200
    lines = answer.iter_lines()
    assert next(lines) == "id: 1"
    return lines


def test_one_look_serves_all_streams(api: Api) -> None:
    dataset = api.ready_dataset(api.population())
    releases = [api.release(dataset) for _ in range(STREAMS)]
    everyone = frozenset(map(UUID, releases))
    with ExitStack() as stack, api.client(api.new_key("curator")) as client, looks(api) as asked:
        streams = [opened(stack, client, release) for release in releases]
        streams.append(opened(stack, client, releases[0]))
        before = len(asked)
        wait_until(lambda: everyone in asked[before:], timeout=PATIENCE, what="a look for all")
        first = asked.index(everyone, before)
        wait_until(lambda: len(asked) > first + 3, timeout=PATIENCE, what="more looks")
        assert set(asked[first:]) == {everyone}
        for release in releases:
            with api.session() as session, session.begin():
                assert progress.finish(session, UUID(release), "failed")
        for lines in streams:
            assert '"failed"' in [line for line in lines if line.startswith("data:")][-1]


def test_a_key_has_a_limit_of_streams_and_gets_its_places_back(api: Api) -> None:
    release = api.release(api.ready_dataset(api.population()))
    most = api.context.settings.max_event_streams_per_key
    path = f"/v1/releases/{release}/events"
    limits = httpx.Limits(max_connections=most + 1)
    headers = {"Authorization": f"Bearer {api.new_key('curator')}"}

    def is_open() -> bool:
        with client.stream("GET", path) as answer:
            return answer.status_code == 200

    with (
        ExitStack() as stack,
        httpx.Client(base_url=api.url, headers=headers, limits=limits, timeout=30) as client,
    ):
        kept = [opened(stack, client, release) for _ in range(most)]
        with client.stream("GET", path) as refused:
            assert refused.status_code == 429, f"{len(kept)} streams are open"
            refused.read()
        found = problem(refused, 429, "too-many-streams")
        assert "close one" in found["detail"] and "GET /v1/releases/{id}" in found["detail"]
        # Other keys, and other requests of this key, are not affected.
        assert client.get(f"/v1/releases/{release}").status_code == 200
        with api.role("curator").stream("GET", path) as another:
            assert another.status_code == 200
        stack.close()
        wait_until(is_open, timeout=PATIENCE, what="a place for another stream")


def test_all_keys_together_have_a_limit(api: Api) -> None:
    settings = api.context.settings.model_copy(update={"max_event_streams": 2})
    feed = EventFeed(replace(api.context, settings=settings))
    for _ in range(2):  # the second time, closed streams no longer count
        with ExitStack() as stack:
            for _ in range(2):
                stack.enter_context(feed.place_for(uuid.uuid4()))
            with pytest.raises(TooManyStreams, match="try again later"):
                stack.enter_context(feed.place_for(uuid.uuid4()))
