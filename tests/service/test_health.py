"""Anonymous callers cannot multiply the checks of readiness."""

import asyncio
from threading import Event

from service.health import SharedCheck


def test_callers_that_arrive_during_a_check_share_it() -> None:
    begun, may_end = Event(), Event()
    checks: list[int] = []

    def check() -> list[str]:
        checks.append(1)
        begun.set()
        may_end.wait()
        return ["storage"]

    async def ask() -> list[list[str]]:
        shared = SharedCheck()
        first = asyncio.create_task(shared.run(check))
        await asyncio.to_thread(begun.wait)
        others = [asyncio.create_task(shared.run(check)) for _ in range(50)]
        await asyncio.sleep(0)
        others.pop().cancel()
        may_end.set()
        return [await first, *[await each for each in others], await shared.run(check)]

    assert asyncio.run(ask()) == [["storage"]] * 51
    # The last caller came later, and got a check of its own.
    assert len(checks) == 2
