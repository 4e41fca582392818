"""How many releases and dry runs one key may have in the queue."""

import tempfile
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.embedded import PostgresServer, ValkeyServer
from tests.databases import create_database

from .support import Api, problem, release_body, serving, settings_for

MOST_RELEASES, MOST_DRY_RUNS = 2, 3


@pytest.fixture(scope="module")
def api(postgres_server: PostgresServer, valkey_server: ValkeyServer) -> Iterator[Api]:
    """A service with short queues, on a database of its own."""
    with tempfile.TemporaryDirectory(prefix="scrim-test-") as folder:
        settings = settings_for(
            create_database(postgres_server.url),
            valkey_server.url,
            Path(folder),
            max_queued_releases=MOST_RELEASES,
            max_queued_dry_runs=MOST_DRY_RUNS,
        )
        with serving(settings, Path(folder)) as running:
            yield running


@pytest.fixture
def population(api: Api) -> str:
    return api.population()


@pytest.fixture
def dataset(api: Api, population: str) -> str:
    return api.ready_dataset(population)


@pytest.fixture
def curator(api: Api) -> Iterator[httpx.Client]:
    """A curator without releases."""
    with api.client(api.new_key("curator")) as client:
        yield client


def create(client: httpx.Client, dataset: str, *, key: str = "", **changes: Any) -> httpx.Response:
    headers = {"Idempotency-Key": key or uuid.uuid4().hex}
    return client.post("/v1/releases", json=release_body(dataset, **changes), headers=headers)


def test_a_full_queue_says_how_many_wait_and_what_to_do(
    api: Api, population: str, dataset: str, curator: httpx.Client
) -> None:
    for _ in range(MOST_RELEASES):
        assert create(curator, dataset).status_code == 202
    found = problem(create(curator, dataset), 409, "queue-full")
    assert found["detail"] == (
        "this key has 2 releases in the queue, and may have 2; wait until some have started, or "
        "cancel some"
    )
    assert api.budget(population)["rho_reserved"] == pytest.approx(0.1 * MOST_RELEASES)


def test_dry_runs_have_a_limit_of_their_own(dataset: str, curator: httpx.Client) -> None:
    for _ in range(MOST_RELEASES):
        assert create(curator, dataset).status_code == 202
    for _ in range(MOST_DRY_RUNS):
        assert create(curator, dataset, dry_run=True).status_code == 202
    found = problem(create(curator, dataset, dry_run=True), 409, "queue-full")
    assert found["detail"].startswith("this key has 3 dry runs in the queue, and may have 3;")


def test_each_key_has_its_own_queue(api: Api, dataset: str, curator: httpx.Client) -> None:
    for _ in range(MOST_DRY_RUNS):
        assert create(curator, dataset, dry_run=True).status_code == 202
    with api.client(api.new_key("curator")) as other:
        assert create(other, dataset, dry_run=True).status_code == 202


def test_what_started_or_was_cancelled_makes_room(
    api: Api, dataset: str, curator: httpx.Client
) -> None:
    started, cancelled = (create(curator, dataset).json()["id"] for _ in range(MOST_RELEASES))
    problem(create(curator, dataset), 409, "queue-full")
    api.finish(started)
    assert curator.post(f"/v1/releases/{cancelled}/cancel").status_code == 200
    for _ in range(MOST_RELEASES):
        assert create(curator, dataset).status_code == 202


def test_a_repeated_request_needs_no_room(dataset: str, curator: httpx.Client) -> None:
    for _ in range(MOST_DRY_RUNS - 1):
        assert create(curator, dataset, dry_run=True).status_code == 202
    last = create(curator, dataset, dry_run=True, key="the last one")
    assert create(curator, dataset, dry_run=True, key="the last one").json() == last.json()


def test_requests_at_the_same_moment_do_not_exceed_it(dataset: str, curator: httpx.Client) -> None:
    with ThreadPoolExecutor(max_workers=12) as pool:
        answers = pool.map(lambda _: create(curator, dataset, dry_run=True), range(12))
        counts = Counter(answer.status_code for answer in answers)
    assert counts == {202: MOST_DRY_RUNS, 409: 12 - MOST_DRY_RUNS}
