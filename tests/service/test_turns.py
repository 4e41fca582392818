"""Plans of one key leave turns, and threads, to others."""

import asyncio
from uuid import UUID

from fastapi.routing import APIRoute

from service.console import releases as console
from service.releases import endpoints as api
from service.releases.turns import PLANNED_AT_ONCE, PlanningTurns, planning_turn

BUSY, OTHER = UUID(int=1), UUID(int=2)


def test_a_key_with_many_previews_takes_one_turn() -> None:
    async def plan() -> tuple[int, list[UUID]]:
        turns, begun, may_end = PlanningTurns(), list[UUID](), asyncio.Event()

        async def take(key: UUID) -> None:
            async with turns.turn(key):
                begun.append(key)
                await may_end.wait()

        tasks = [asyncio.create_task(take(key)) for key in [*[BUSY] * 50, OTHER]]
        for _ in range(200):
            await asyncio.sleep(0)
        at_once = list(begun)
        may_end.set()
        await asyncio.gather(*tasks)
        return len(begun), at_once

    planned, at_once = asyncio.run(plan())
    assert planned == 51
    assert at_once == [BUSY, OTHER]


def test_no_more_plans_at_once_than_there_are_turns() -> None:
    async def plan() -> int:
        turns, may_end, begun = PlanningTurns(), asyncio.Event(), 0

        async def take(number: int) -> None:
            nonlocal begun
            async with turns.turn(UUID(int=number)):
                begun += 1
                await may_end.wait()

        tasks = [asyncio.create_task(take(number)) for number in range(10)]
        for _ in range(200):
            await asyncio.sleep(0)
        at_once = begun
        may_end.set()
        await asyncio.gather(*tasks)
        return at_once

    assert asyncio.run(plan()) == PLANNED_AT_ONCE


def test_every_request_that_plans_waits_for_its_turn() -> None:
    planning = {
        (route.path, *sorted(route.methods or ()))
        for router in (api.router, console.router)
        for route in router.routes
        if isinstance(route, APIRoute)
        and any(
            each.call in (planning_turn, console.planning_turn)
            for each in route.dependant.dependencies
        )
    }
    assert planning == {
        ("/v1/releases", "POST"),
        ("/v1/releases/preview", "POST"),
        ("/console/releases/new", "GET"),
        ("/console/releases/new", "POST"),
        ("/console/releases/preview", "POST"),
    }
