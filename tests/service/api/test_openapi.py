"""The OpenAPI document compared with the service: responses conform to it, and it is readable."""

import json
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import redis
import requests
import schemathesis
from schemathesis import Case, Config, GenerationMode
from schemathesis.checks import (
    ignored_auth,
    load_all_checks,
    positive_data_acceptance,
    unsupported_method,
)
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation.hypothesis.builder import (
    HypothesisTestConfig,
    HypothesisTestMode,
    create_test,
)
from schemathesis.schemas import APIOperation

from service.app import create_app
from service.data.config import Settings
from service.data.media_types import GZIP, PARQUET
from service.data.task_queue import ANSWER, FAST, SAMPLE
from service.embedded import PostgresServer, ValkeyServer
from service.keys.schemas import SCOPES
from tests.databases import create_database

from .support import CSV, SCHEMA, Api, examples, problem, random_key, serving, settings_for

FIRST, EVERY = 80, 20
NEEDS_NO_KEY = {"/healthz", "/readyz"}
ANSWERS = {
    ANSWER: [
        {
            "item": "sex",
            "query": "sex=F",
            "value": 0.5,
            "count": 1.0,
            "standard_error": None,
            "count_standard_error": None,
            "basis": "model",
        }
    ],
    SAMPLE: CSV.decode(),
}
DOCUMENT = create_app(
    Settings(
        database_url="postgresql://nobody@nowhere/nothing",
        broker_url="redis://nowhere/0",
        storage_url="file:///nowhere",
        data_dir=Path("nowhere"),
        master_key=random_key(),
        signing_key=random_key(),
    )
).openapi()
OPERATIONS = [
    (method, path, operation)
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
]
schemathesis.serializer.alias([GZIP, PARQUET], "application/octet-stream")
# A list that is longer than documented may make the body larger than any may be.
REFUSED = [
    "400",
    "401",
    "403",
    "404",
    "405",
    "406",
    "409",
    "413",
    "415",
    "422",
    "428",
    "429",
    "5xx",
]
TOO_LARGE = {"checks": {"negative_data_rejection": {"expected-statuses": REFUSED}}}
FAMILIES = ("Auto", "Mwem", "Gem", "PmwPub", "PrivateGsd", "DualQuery")


def with_few_mechanisms(document: dict[str, Any]) -> dict[str, Any]:
    """The document with one mechanism of each family, whose fields are of the same kinds as all others'."""
    smaller = deepcopy(document)
    mechanism = smaller["components"]["schemas"]["ReleaseRequest"]["properties"]["mechanism"]
    mechanism["oneOf"] = [{"$ref": f"#/components/schemas/{name}"} for name in FAMILIES]
    return smaller


DESCRIBED = schemathesis.openapi.from_dict(
    with_few_mechanisms(DOCUMENT), config=Config.from_dict(TOO_LARGE)
)
SKETCHED = schemathesis.openapi.from_dict(DOCUMENT, config=Config.from_dict(TOO_LARGE))
each_operation = pytest.mark.parametrize(
    ("path", "method"),
    [pytest.param(path, method, id=f"{method.upper()} {path}") for method, path, _ in OPERATIONS],
)


def send_requests(
    operation: APIOperation[Any, Any, Any, Any],
    send: Callable[[Case[Any]], None],
    *,
    random: int,
    systematic: bool,
) -> None:
    """Make requests for an operation and send each: as documented, and wrong in one way.

    The decorator `parametrize` of schemathesis makes the requests of all operations when tests are
    collected, which takes seconds in every process.
    """
    modes = [HypothesisTestMode.EXAMPLES, HypothesisTestMode.FUZZING]
    if systematic:
        modes.append(HypothesisTestMode.COVERAGE)
    project = operation.schema.config
    config = HypothesisTestConfig(project, modes, settings=examples(random))
    load_all_checks()
    create_test(operation=operation, test_func=send, config=config)()


@dataclass(frozen=True)
class World:
    """A service, a session with its connections, and the ids of things that exist there."""

    api: Api
    session: requests.Session
    key: str
    real: dict[str, str]
    asked: Counter[str] = field(default_factory=Counter)

    def has_time_for(self, case: Case[Any]) -> bool:
        """All requests of a small operation; for the largest bodies there would be thousands."""
        number = self.asked[case.operation.label]
        self.asked[case.operation.label] += 1
        return number < FIRST or number % EVERY == 0

    def ask(self, case: Case[Any], *, key: str | None) -> Any:
        """Send a request about things that exist, and check the response against the document."""
        path = case.meta.components.get(ParameterLocation.PATH) if case.meta else None
        if path is not None and path.mode == GenerationMode.POSITIVE:
            case.path_parameters = {name: self.real[name] for name in case.path_parameters}
        # Not all rules can be said in JSON Schema: a cursor must be one of ours, exactly one of rho
        # and epsilon must be given. Whether a key is needed has a test of its own below.
        skipped = [positive_data_acceptance, ignored_auth]
        if case.path.endswith("/preview"):
            # GET /v1/releases/preview asks for a release of that name: 422, not 405.
            skipped.append(unsupported_method)
        return case.call_and_validate(
            base_url=self.api.url,
            session=self.session,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            excluded_checks=skipped,
        )


@contextmanager
def answering(broker_url: str) -> Iterator[None]:
    """A worker that answers every question to a released model, so that each call has an end."""
    stopping = threading.Event()

    def serve() -> None:
        with redis.Redis.from_url(broker_url) as broker:
            while not stopping.is_set():
                if found := broker.blpop([FAST], timeout=0.1):
                    headers = json.loads(found[1])["headers"]
                    answer = {"status": "SUCCESS", "result": ANSWERS[headers["task"]]}
                    broker.set(f"celery-task-meta-{headers['id']}", json.dumps(answer), ex=60)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


@pytest.fixture(scope="module")
def world(postgres_server: PostgresServer, valkey_server: ValkeyServer) -> Iterator[World]:
    """A service on a database and a queue of its own. Its release is over: its events end."""
    broker_url = valkey_server.url.replace("/0", "/6")
    with tempfile.TemporaryDirectory(prefix="scrim-test-") as folder, answering(broker_url):
        chosen = settings_for(create_database(postgres_server.url), broker_url, Path(folder))
        with serving(chosen, Path(folder)) as api, requests.Session() as session:
            population = api.population()
            saved = api.all.post("/v1/schemas", json={"name": "people", "schema": SCHEMA})
            release = api.release(api.ready_dataset(population), publish=True)
            api.finish(release, {"synthetic.csv": CSV})
            api.new_key("analyst")
            keys = api.all.get("/v1/keys").json()["items"]
            real = {
                "key_id": keys[0]["id"],
                "population_id": population,
                "schema_id": saved.json()["id"],
                "dataset_id": api.dataset(population),
                "release_id": release,
                "name": "synthetic.csv",
            }
            yield World(api, session, api.new_key(*SCOPES), real)


@each_operation
def test_answers_are_as_documented(path: str, method: str, world: World) -> None:
    def send(case: Case[Any]) -> None:
        if world.has_time_for(case):
            world.ask(case, key=world.key)

    # Invalid variants of a release are thousands of requests. A preview has the same body.
    systematic = path != "/v1/releases/preview"
    send_requests(DESCRIBED[path][method], send, random=6, systematic=systematic)


@each_operation
def test_without_a_key_nothing_is_told(path: str, method: str, world: World) -> None:
    def send(case: Case[Any]) -> None:
        answer = world.ask(case, key=None)
        if path not in NEEDS_NO_KEY:
            # 422: a body that is not JSON is refused before its key is checked.
            assert answer.status_code in {401, 404, 405, 422}

    # Invalid variants of a body do not matter without a key.
    send_requests(SKETCHED[path][method], send, random=3, systematic=False)


def test_nothing_went_wrong_inside(world: World) -> None:
    assert "unexpected_error" not in world.api.log.getvalue()
    assert world.api.all.get("/readyz").status_code == 200
    verified = world.api.all.get(f"/v1/populations/{world.real['population_id']}/ledger/verify")
    assert verified.json()["ok"] is True


def test_allow_names_all_methods_of_a_path(world: World) -> None:
    for path, methods in (
        ("/v1/keys", "GET, POST"),
        (f"/v1/datasets/{world.real['dataset_id']}", "DELETE, GET"),
        ("/v1/releases/preview", "POST"),
    ):
        answer = world.api.all.patch(path)
        problem(answer, 405, "method-not-allowed")
        assert answer.headers["allow"] == methods


def test_bodies_that_are_not_text(world: World) -> None:
    for body in (b"\xff\xfe\x00", b"\x01\x80"):
        problem(world.api.all.post("/v1/keys", content=body), 422, "invalid")


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS)
def test_operations_can_be_read(method: str, path: str, operation: Any) -> None:
    assert operation["summary"] and operation["description"]
    known = {tag["name"] for tag in DOCUMENT["tags"]}
    assert len(operation["tags"]) == 1 and set(operation["tags"]) <= known
    assert [each["name"] for each in operation.get("parameters", []) if not text_of(each)] == []
    for status, answer in operation["responses"].items():
        assert text_of(answer)
        if int(status) >= 400:
            problem_schema = {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}
            assert answer["content"] == {"application/problem+json": problem_schema}
    if path not in NEEDS_NO_KEY:
        assert operation["security"] == [{"HTTPBearer": []}]
        assert {"401", "429"} <= set(operation["responses"])


def test_summaries_tell_operations_apart() -> None:
    summaries = [operation["summary"] for _, _, operation in OPERATIONS]
    assert len(set(summaries)) == len(summaries)


@pytest.mark.parametrize("name", DOCUMENT["components"]["schemas"])
def test_schemas_can_be_read(name: str) -> None:
    schema = DOCUMENT["components"]["schemas"][name]
    assert text_of(schema)
    silent = [field for field, about in schema.get("properties", {}).items() if not text_of(about)]
    assert silent == []


def text_of(part: Any) -> str:
    return str(part.get("description", "")).strip()
