"""A release's events as a stream (server-sent events), resumable where it broke off."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from uuid import UUID

from fastapi.concurrency import run_in_threadpool

from service.context import Context
from service.models import ReleaseEvent
from service.releases import repository
from service.releases.progress import FINAL_STATES
from service.views import day_of

MEDIA_TYPE = "text/event-stream"
_KEEP_ALIVE_SECONDS = 15.0


async def stream(
    context: Context, release_id: UUID, *, after: int, days_only: bool
) -> AsyncIterator[str]:
    """Every event after that number, as it happens, until the release has ended.

    `days_only`: the caller must not learn how long the job took.
    """
    quiet_since = time.monotonic()
    while not context.stopping.is_set():
        events, is_over = await run_in_threadpool(_look, context, release_id, after)
        for event in events:
            after = event.seq
            yield _written(event, day_of(event.at) if days_only else event.at)
        if events:
            quiet_since = time.monotonic()
            continue
        if is_over:
            return
        if time.monotonic() - quiet_since > _KEEP_ALIVE_SECONDS:
            # Proxies close a silent connection.
            quiet_since = time.monotonic()
            yield ": still here\n\n"
        await asyncio.sleep(context.settings.event_poll_seconds)


def _look(context: Context, release_id: UUID, after: int) -> tuple[Sequence[ReleaseEvent], bool]:
    """What is new, and whether nothing more will come."""
    with context.transaction() as work:
        # The state first: an event that comes after it is found by the next look.
        is_over = repository.get(work.session, release_id).state in FINAL_STATES
        return repository.events_after(work.session, release_id, after), is_over


def _written(event: ReleaseEvent, at: datetime) -> str:
    data = json.dumps({**event.payload, "at": at.isoformat()})
    return f"id: {event.seq}\nevent: {event.kind}\ndata: {data}\n\n"
