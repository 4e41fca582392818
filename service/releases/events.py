"""A release's events as a stream (server-sent events), which can be resumed after an interruption.

Curators get every event as it happens. Other callers get only the final state: the number of other
events, and the time between them, reveal how long a job took.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from service.data import releases
from service.data.context import Context
from service.data.errors import TooManyStreams
from service.data.models import ReleaseEvent, ReleaseRow
from service.data.progress import FINAL_STATES
from service.data.views import day_of

EVENTS_MEDIA_TYPE = "text/event-stream"
STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
FINAL_ID = 1
"""Number of the only event that analysts get: the true number would reveal how many came before."""
_KEEP_ALIVE_SECONDS = 15.0
"""Interval of comments on a silent stream, shorter than the idle limits of usual proxies."""


@dataclass(frozen=True)
class _News:
    """Events that a stream has not sent yet, and whether no more will come."""

    events: Sequence[ReleaseEvent]
    is_last: bool


@dataclass(frozen=True)
class _Question:
    """A stream that waits for events after the one with this number."""

    release_id: UUID
    after: int
    answer: asyncio.Future[_News]


class EventFeed:
    """Reads new events once for all streams of this process, and limits the number of streams.

    Used only on the event loop, so it needs no lock.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._questions: list[_Question] = []
        self._streams: Counter[UUID] = Counter()

    @contextmanager
    def place_for(self, key_id: UUID) -> Iterator[None]:
        """Count one more stream; TooManyStreams if the key or the process has reached its limit."""
        settings = self._context.settings
        if self._streams[key_id] >= settings.max_event_streams_per_key:
            raise TooManyStreams(
                f"this key has {settings.max_event_streams_per_key} event streams open, the most "
                "that one key may have; close one, or poll GET /v1/releases/{id} instead"
            )
        if self._streams.total() >= settings.max_event_streams:
            raise TooManyStreams(
                "the service has reached its limit of open event streams; try again later, or "
                "poll GET /v1/releases/{id} instead"
            )
        self._streams[key_id] += 1
        try:
            yield
        finally:
            self._streams[key_id] -= 1
            self._streams += Counter()  # drops keys without a stream

    async def follow(self, release_id: UUID, *, after: int) -> AsyncIterator[str]:
        """Yield every event after that number, as it happens, until the release has ended."""
        news = (await run_in_threadpool(self._look, {release_id: after}))[release_id]
        while True:
            for event in news.events:
                after = event.seq
                yield _written(event.seq, event.kind, event.payload, event.at)
            if news.is_last:
                return
            question = _Question(release_id, after, asyncio.get_running_loop().create_future())
            self._questions.append(question)
            try:
                while not (await asyncio.wait([question.answer], timeout=_KEEP_ALIVE_SECONDS))[0]:
                    # Proxies close a silent connection.
                    yield ": still here\n\n"
            finally:
                question.answer.cancel()
            news = question.answer.result()

    async def run(self) -> None:
        """Send new events to all waiting streams together, until cancelled."""
        while True:
            await asyncio.sleep(self._context.settings.event_poll_seconds)
            self._questions = [each for each in self._questions if not each.answer.done()]
            if self._questions:
                # A copy: streams that ask during the read are answered by the next one.
                await self._answer(tuple(self._questions))

    async def _answer(self, questions: Sequence[_Question]) -> None:
        watched: dict[UUID, int] = {}
        for each in questions:
            watched[each.release_id] = min(each.after, watched.get(each.release_id, each.after))
        found: Mapping[UUID, _News] = {}
        if not self._context.stopping.is_set():
            try:
                found = await run_in_threadpool(self._look, watched)
            except Exception as error:
                self._context.log.warning("events_unavailable", error_type=type(error).__name__)
        # If the database does not answer, the streams end: readers reconnect with Last-Event-ID.
        ended = _News((), is_last=True)
        for each in questions:
            news = found.get(each.release_id, ended)
            events = [event for event in news.events if event.seq > each.after]
            if (events or news.is_last) and not each.answer.done():
                each.answer.set_result(_News(events, news.is_last))

    def _look(self, watched: Mapping[UUID, int]) -> dict[UUID, _News]:
        """Read the events after the given numbers, by release."""
        with self._context.transaction() as work:
            # Read the states first: an event that follows is found by the next read.
            states = releases.states(work.session, watched)
            events = releases.events_after(work.session, watched)
        return {
            release_id: _News(events[release_id], is_last=_is_last(state, events[release_id]))
            for release_id, state in states.items()
        }


@asynccontextmanager
async def open_feed(context: Context) -> AsyncIterator[EventFeed]:
    """Run an event feed in the background."""
    feed = EventFeed(context)
    running = asyncio.create_task(feed.run())
    try:
        yield feed
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


class EventStream(StreamingResponse):
    """The events of a release to a curator."""

    def __init__(self, feed: EventFeed, release_id: UUID, *, key_id: UUID, after: int) -> None:
        super().__init__(
            feed.follow(release_id, after=after),
            media_type=EVENTS_MEDIA_TYPE,
            headers=STREAM_HEADERS,
        )
        self._feed = feed
        self._key_id = key_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events, unless there are too many streams."""
        with self._feed.place_for(self._key_id):
            await super().__call__(scope, receive, send)


def final_event(release: ReleaseRow, *, after: int) -> Response:
    """The final state of a release that has ended, to others than curators."""
    assert release.finished_at is not None
    content = ""
    if after < FINAL_ID:
        at = day_of(release.finished_at)
        content = _written(FINAL_ID, "state", {"state": release.state}, at)
    return Response(content, media_type=EVENTS_MEDIA_TYPE, headers=STREAM_HEADERS)


def _is_last(state: str, events: Sequence[ReleaseEvent]) -> bool:
    """Whether no event follows these, given the state of the release before them."""
    if state in FINAL_STATES:
        return len(events) < releases.MOST_EVENTS
    return bool(events) and events[-1].payload.get("state") in FINAL_STATES


def _written(number: int, kind: str, payload: Mapping[str, Any], at: datetime) -> str:
    data = json.dumps({**payload, "at": at.isoformat()})
    return f"id: {number}\nevent: {kind}\ndata: {data}\n\n"
