"""Behaviour specific to the asynchronous or to the blocking client."""

import inspect
from collections.abc import Callable
from pathlib import Path

import anyio
import httpx
import pytest
from pydantic import BaseModel

from scrim import AsyncClient, Client, ReleaseFailed
from scrim.releases import AsyncReleaseHandle, ReleaseHandle
from tests.scrim.support import (
    DATASET,
    POPULATION,
    RELEASE,
    SPEC,
    Script,
    answer,
    events,
    page,
)

RESOURCES = ("keys", "populations", "datasets", "releases")


def public(thing: object) -> dict[str, Callable[..., object]]:
    found = inspect.getmembers(type(thing), inspect.isfunction)
    return {name: method for name, method in found if not name.startswith("_")}


@pytest.mark.parametrize("resource", RESOURCES)
def test_both_clients_have_the_same_methods(resource: str) -> None:
    blocking = public(getattr(Client("http://scrim.test"), resource))
    asynchronous = public(getattr(AsyncClient("http://scrim.test"), resource))
    assert blocking.keys() == asynchronous.keys() != set()
    for name, method in blocking.items():
        assert inspect.signature(method) == inspect.signature(asynchronous[name])
        assert not inspect.iscoroutinefunction(method)


def test_both_kinds_of_releases_have_the_same_methods() -> None:
    kinds: tuple[type[BaseModel], ...] = (ReleaseHandle, AsyncReleaseHandle)
    actions = [public(kind.model_construct()) for kind in kinds]
    assert actions[0].keys() == actions[1].keys() >= {"wait", "download", "to_pandas", "to_polars"}


class Meeting:
    """A service that answers only after a given number of requests have arrived."""

    def __init__(self, size: int) -> None:
        self._missing = size
        self._complete = anyio.Event()

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self._missing -= 1
        if self._missing == 0:
            self._complete.set()
        await self._complete.wait()
        return answer(POPULATION)


def test_calls_wait_beside_each_other() -> None:
    async def ask_three() -> list[str]:
        found: list[str] = []

        async def ask(client: AsyncClient) -> None:
            found.append((await client.populations.get("p1")).id)

        transport = httpx.MockTransport(Meeting(3))
        async with AsyncClient("http://scrim.test", transport=transport) as client:
            with anyio.fail_after(10):
                async with anyio.create_task_group() as group:
                    for _ in range(3):
                        group.start_soon(ask, client)
        return found

    assert anyio.run(ask_three) == ["p1", "p1", "p1"]


def test_a_list_is_read_as_far_as_it_is_needed() -> None:
    script = Script(page(POPULATION, following="abc"), page(POPULATION))

    async def read_one() -> str:
        async for population in script.async_client().populations.list():
            return population.id
        return "none"

    assert anyio.run(read_one) == "p1"
    assert len(script.requests) == 1


def test_a_blocking_list_is_read_as_far_as_it_is_needed() -> None:
    script = Script(page(POPULATION, following="abc"), page(POPULATION))
    assert next(script.client().populations.list()).id == "p1"
    assert len(script.requests) == 1


class TestReleases:
    def test_a_release_can_wait_for_its_end(self) -> None:
        script = Script(
            answer(RELEASE | {"state": "queued"}, 202), events(), answer(RELEASE), events()
        )

        async def submit() -> AsyncReleaseHandle:
            release = await script.async_client().releases.submit(SPEC)
            return await release.wait(timeout=60)

        assert anyio.run(submit).state == "succeeded"

    def test_so_does_one_of_a_blocking_client(self) -> None:
        script = Script(answer(RELEASE | {"state": "queued"}, 202), events(), answer(RELEASE))
        assert script.client().releases.submit(SPEC).wait().state == "succeeded"

    def test_one_of_a_list_knows_where_it_is_from(self) -> None:
        failed = RELEASE | {"state": "failed"}
        script = Script(page(failed), events(), answer(failed))
        (release,) = script.client().releases.list()
        with pytest.raises(ReleaseFailed):
            release.wait()


def run_inside_a_loop(call: Callable[[], object]) -> object:
    async def inside() -> object:
        return call()

    return anyio.run(inside)


def test_a_blocking_client_works_beside_a_running_loop() -> None:
    """As in a notebook, which runs its cells in an event loop."""
    script = Script(answer(POPULATION), page(POPULATION), events(), answer(RELEASE))
    client = script.client()
    assert run_inside_a_loop(lambda: client.populations.get("p1").id) == "p1"
    assert run_inside_a_loop(lambda: [each.id for each in client.populations.list()]) == ["p1"]
    assert run_inside_a_loop(lambda: client.releases.wait("r1").state) == "succeeded"


def test_files_are_read_outside_the_loop(tmp_path: Path) -> None:
    """The loop continues while a slow disk is read."""
    file = tmp_path / "table.csv"
    file.write_bytes(b"sex\n" + b"F\n" * 1_000_000)
    script = Script(answer(DATASET, 202))
    turns = 0

    async def upload() -> None:
        nonlocal turns
        async with anyio.create_task_group() as group:
            group.start_soon(script.async_client().datasets.upload_content, "d1", file)

            async def count() -> None:
                nonlocal turns
                while not script.requests:
                    turns += 1
                    await anyio.sleep(0)

            group.start_soon(count)

    anyio.run(upload)
    assert turns > 1
    assert script.requests[0].content == file.read_bytes()
