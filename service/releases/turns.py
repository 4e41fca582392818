"""Turns to plan releases, so that the previews of one key leave threads to the requests of others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast
from uuid import UUID
from weakref import WeakValueDictionary

from fastapi import Request

from service.keys.access import Curator

PLANNED_AT_ONCE = 2
"""Releases that one service process plans at the same time; a plan takes up to a second of processor."""


class PlanningTurns:
    """One plan at a time for each key, and a few for all keys. Waiting takes no thread."""

    def __init__(self) -> None:
        self._all = asyncio.Semaphore(PLANNED_AT_ONCE)
        self._of_key: WeakValueDictionary[UUID, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, key_id: UUID) -> AsyncIterator[None]:
        """Wait for a turn of this key, and keep it."""
        own = self._of_key.setdefault(key_id, asyncio.Lock())
        async with own, self._all:
            yield


async def planning_turn(request: Request, caller: Curator) -> AsyncIterator[None]:
    """The turn of a request of the API that plans a release."""
    async with of(request).turn(caller.key_id):
        yield


def of(request: Request) -> PlanningTurns:
    """The turns of the application that serves this request."""
    return cast(PlanningTurns, request.app.state.planning)
