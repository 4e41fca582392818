"""A browser, and the whole stack with real workers."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from service.data.task_queue import QUEUES
from service.embedded import PostgresServer, ValkeyServer
from service.keys.schemas import Scope
from service.keys.service import create_key
from tests.browser.support import Person, find_chromium, flags
from tests.worker.support import Stack, await_that, running_stack

KINDS: list[dict[str, Any]] = [
    {"type": "categorical", "values": ["surgery", "medicine", "children", "other"]},
    {"type": "integer", "lower": 0, "upper": 99, "bins": {"width": 10}, "missing": ["999", "?"]},
    {"type": "real", "lower": 0, "upper": 500000, "bins": {"edges": [0, 100, 10000, 500000]}},
    {"type": "date", "lower": "2015-01-01", "upper": "2024-12-31", "bins": {"width": 90}},
    {"type": "code", "values": [f"A{place:02}" for place in range(60)], "levels": [1, 2]},
    {"type": "boolean", "true": ["yes"], "false": ["no"]},
    {"type": "ordinal", "values": ["mild", "moderate", "severe"]},
]
WIDE = {
    "columns": [{"name": f"column_{place}", **KINDS[place % len(KINDS)]} for place in range(99)]
    + [{"name": "pid", "type": "identifier"}]
}


@dataclass(frozen=True)
class World:
    """An installation with some data and releases."""

    stack: Stack
    keys: dict[Scope, str]
    population: UUID
    dataset: UUID
    waiting: UUID
    release: UUID
    unpublished: UUID
    wide: UUID
    """A dataset of 100 columns of all types, without rows."""
    saved: UUID
    """A saved schema."""

    @property
    def url(self) -> str:
        return str(self.stack.http.base_url).rstrip("/")


@pytest.fixture(scope="session")
def program() -> str:
    """The Chromium to start; without one, nothing else is started."""
    return find_chromium()


# Not for the whole session: its event loop would conflict with tests that run their own.
@pytest.fixture(scope="module")
def browser(program: str) -> Iterator[Any]:
    """A running Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=program, args=flags())
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def world(program: str) -> Iterator[World]:
    """A service with workers, one population, its data and two releases."""
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="scrim-browser-")))
        postgres = held.enter_context(PostgresServer(folder / "servers", durable=False))
        valkey = held.enter_context(ValkeyServer(folder / "servers", durable=False))
        place = folder / "stack"
        place.mkdir()
        stack = held.enter_context(running_stack(postgres.url, valkey.url, place))
        for queue in QUEUES:
            worker = stack.process(f"worker-{queue}", "-m", "worker", f"--queue={queue}")
            worker.start()
            held.callback(worker.stop)
        yield _furnished(stack)
        stack.check()


def _furnished(stack: Stack) -> World:
    roles: tuple[Scope, ...] = ("admin", "curator", "analyst")
    with stack.context.transaction() as work:
        keys = {role: create_key(work.session, f"the {role}", [role])[1] for role in roles}
    population = stack.population(name="people of a small town")
    dataset = stack.uploaded(population)
    await_that(lambda: stack.show("datasets", dataset)["state"] == "ready", "a ready dataset")
    release = stack.submit(dataset, workload=[{"type": "marginals", "k": 1}], publish=True)
    unpublished = stack.submit(dataset, dry_run=True)

    def has_succeeded(release: UUID) -> bool:
        return bool(stack.release(release)["state"] == "succeeded")

    for each in (release, unpublished):
        await_that(partial(has_succeeded, each), "a release")
    saved = stack.schema("people", WIDE)
    wide = stack.dataset(population, schema=WIDE)
    waiting = stack.dataset(population)
    return World(stack, keys, population, dataset, waiting, release, unpublished, wide, saved)


@pytest.fixture
def visit(browser: Any, world: World) -> Iterator[Callable[..., Any]]:
    """Open isolated browsers, and close them at the end; each must have logged no error."""
    with ExitStack() as held:

        @contextmanager
        def opened(**options: Any) -> Iterator[Person]:
            context = browser.new_context(**options)
            held.callback(context.close)
            person = Person(context.new_page(), world.url)
            yield person
            person.check()

        yield opened
