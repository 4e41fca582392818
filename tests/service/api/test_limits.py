"""Limits: bodies of unknown callers, size and depth of bodies, and requests per key."""

import asyncio
import json
import socket
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import pytest
import redis
from sqlalchemy import event, text
from starlette.exceptions import HTTPException

from service.bodies import (
    MAX_CONTAINERS,
    MAX_FORM_FIELDS,
    MEBIBYTE,
    SMALL,
    limited,
    parse_json,
)
from service.data.db import open_engine
from service.data.limiter import Limiter, leave
from service.embedded import PostgresServer, ValkeyServer
from tests.databases import create_database

from .support import Api, problem, release_body, serving, settings_for
from .test_roles import CALLS, NOBODY

UNREAD = [("POST", "/nothing"), ("PATCH", "/v1/keys"), ("POST", "/v1/nothing")]
CONNECTIONS = 3
AT_ONCE = 3


async def _call(app: Any, method: str, path: str, *, key: str | None) -> int:
    """The status of a request whose body must not be read."""
    statuses: list[int] = []

    async def receive() -> Any:
        raise AssertionError("the body was read")

    async def send(message: Any) -> None:
        statuses.extend([message["status"]] if "status" in message else [])

    headers = [(b"content-type", b"application/json"), (b"content-length", b"33554432")]
    if key is not None:
        headers.append((b"authorization", f"Bearer {key}".encode()))
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(),
        "query_string": b"", "root_path": "", "scheme": "http", "http_version": "1.1",
        "headers": headers, "server": ("test", 80), "client": ("test", 1),
    }  # fmt: skip
    await app(scope, receive, send)
    return statuses[0]


@pytest.mark.parametrize(("method", "path"), [(call[0], call[1]) for call in CALLS])
def test_no_body_is_read_before_the_key_is_checked(api: Api, method: str, path: str) -> None:
    names = ("key_id", "population_id", "dataset_id", "release_id", "schema_id")
    url = path.format(**dict.fromkeys(names, NOBODY), name="synthetic.csv")
    for key in (None, "scrim_wrong"):
        assert asyncio.run(_call(api.app, method, url, key=key)) == 401


@pytest.mark.parametrize(("method", "path"), UNREAD)
def test_no_body_is_read_where_there_is_nothing(api: Api, method: str, path: str) -> None:
    assert asyncio.run(_call(api.app, method, path, key=None)) in {404, 405}


def test_no_body_is_read_of_a_key_without_the_scope(api: Api) -> None:
    key = api.new_key("analyst")
    assert asyncio.run(_call(api.app, "POST", "/v1/releases", key=key)) == 403


def test_strangers_send_little(api: Api) -> None:
    with api.client(None) as stranger:
        answer = stranger.post("/console/sign-in", content=b"a=" + b"x" * SMALL)
        assert answer.status_code == 413
        # Without a declared length, what arrives is counted.
        answer = stranger.post("/console/sign-in", content=iter([b"x" * 2**14] * 5))
        assert answer.status_code == 413


def test_forms_have_a_limited_number_of_fields(api: Api) -> None:
    with api.client(None) as stranger:
        accept = {"Accept": "application/problem+json"}
        content = b"a=&" * (MAX_FORM_FIELDS + 1)
        answer = stranger.post("/console/sign-in", content=content, headers=accept)
    found = problem(answer, 422, "invalid")
    assert f"{MAX_FORM_FIELDS:,} fields" in found["detail"]


@pytest.mark.parametrize(
    ("path", "most"),
    [("/v1/keys", SMALL), ("/v1/populations", SMALL), ("/v1/releases/preview", MEBIBYTE),
     ("/v1/datasets", 8 * MEBIBYTE)],
)  # fmt: skip
def test_every_endpoint_has_a_limit_of_its_own(api: Api, path: str, most: int) -> None:
    headers = {"Content-Type": "application/json"}
    found = problem(
        api.all.post(path, content=b" " * (most + 1), headers=headers), 413, "too-large"
    )
    assert f"{most:,} bytes" in found["detail"]
    problem(api.all.post(path, content=b"{" + b" " * (most - 1), headers=headers), 422, "invalid")


@pytest.mark.parametrize(
    "content",
    [
        b"[" * SMALL,
        b'{"name":' * 5000 + b"1" + b"}" * 5000,
        b"[" * 150_000,
        b"[" + b"[]," * MAX_CONTAINERS + b"[]]",
        b'{"name": "\\ud800"}',
        b'{"name": "\xff"}',
    ],
    ids=["deep", "deep objects", "deep and large", "wide", "half a character", "not UTF-8"],
)  # fmt: skip
def test_bodies_that_would_cost_much_are_invalid(api: Api, content: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    problem(api.all.post("/v1/datasets", content=content, headers=headers), 422, "invalid")


def test_large_schemas_fit(api: Api) -> None:
    codes = [f"code {number:06}" for number in range(10_000)]
    columns = [
        {"name": f"c{number}", "type": "categorical", "values": codes, "other": codes[0]}
        for number in range(30)
    ]
    dataset = api.dataset(api.population(), {"columns": columns})
    found = api.all.get(f"/v1/datasets/{dataset}").json()
    assert [len(each["values"]) for each in found["schema"]["columns"]] == [10_000] * 30


def test_lists_and_objects_of_a_body_are_counted() -> None:
    fits = b"[" + b",".join([b"{}"] * (MAX_CONTAINERS - 1)) + b"]"
    assert len(parse_json(fits)) == MAX_CONTAINERS - 1
    with pytest.raises(json.JSONDecodeError, match="too many"):
        parse_json(fits.replace(b"{}", b"{},{}", 1))


@pytest.mark.parametrize("padding", [0, SMALL], ids=["small", "large"])
def test_a_body_is_refused_with_few_errors(api: Api, padding: int) -> None:
    columns = [{"name": f"c{number}", "type": "nothing"} for number in range(200)]
    body = {"name": "table", "visibility": "private", "schema": {"columns": columns}}
    content = json.dumps(body | {"population_id": str(uuid.uuid4())}).encode() + b" " * padding
    headers = {"Content-Type": "application/json"}
    answer = api.all.post("/v1/datasets", content=content, headers=headers)
    found = problem(answer, 422, "invalid")
    assert len(found["errors"]) == 100
    assert found["errors"][0]["loc"][0] == "body"


def test_a_large_release_is_read(api: Api) -> None:
    pairs = [["sex", "age"]] * 10_000
    body = release_body(api.ready_dataset(api.population()))
    body["workload"] = [{"type": "marginals", "k": 2, "attributes": pairs}]
    assert SMALL < len(json.dumps(body)) < MEBIBYTE
    # The body was parsed: the same pair twice is refused by the specification, not by a limit.
    assert api.all.post("/v1/releases/preview", json=body).status_code in {200, 422}


def test_a_slow_body_is_given_up() -> None:
    async def receive() -> Any:
        await asyncio.Event().wait()

    async def read() -> None:
        await limited({"headers": []}, receive, seconds=0.01)()

    with pytest.raises(HTTPException) as caught:
        asyncio.run(read())
    assert caught.value.status_code == 408


@pytest.fixture(scope="module")
def strict(postgres_server: PostgresServer, valkey_server: ValkeyServer) -> Iterator[Api]:
    """A service with short timeouts and few connections."""
    with tempfile.TemporaryDirectory(prefix="scrim-test-") as folder:
        settings = settings_for(
            create_database(postgres_server.url),
            valkey_server.url,
            Path(folder),
            header_seconds=1.0,
            max_connections=CONNECTIONS,
            max_requests_per_key=AT_ONCE,
        )
        with serving(settings, Path(folder)) as running:
            yield running


def _connect(service: Api) -> socket.socket:
    host, port = service.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def _read_status(connection: socket.socket) -> int:
    """Read one whole answer."""
    answer = HTTPResponse(connection)
    answer.begin()
    answer.read()
    return answer.status


def _read_all(connection: socket.socket) -> bytes:
    received = b""
    try:
        while piece := connection.recv(2**16):
            received += piece
    except ConnectionResetError:
        pass
    return received


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Half: "])
def test_half_sent_headers_are_given_up(strict: Api, sent: bytes) -> None:
    with _connect(strict) as connection:
        connection.sendall(sent)
        assert _read_all(connection).startswith(b"HTTP/1.1 408 ")


def test_the_next_request_of_a_connection_is_timed_as_well(strict: Api) -> None:
    with _connect(strict) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert _read_status(connection) == 200
        connection.sendall(b"GET /heal")
        assert _read_all(connection).startswith(b"HTTP/1.1 408 ")


def test_an_unread_body_does_not_hold_a_connection(strict: Api) -> None:
    head = b"POST /v1/keys HTTP/1.1\r\nHost: x\r\nContent-Length: 33554432\r\n\r\n"
    with _connect(strict) as connection:
        connection.sendall(head)
        answer = _read_all(connection)
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert answer.count(b"HTTP/1.1") == 1


def test_a_connection_is_used_again_after_an_unread_body(api: Api) -> None:
    head = f"POST /v1/keys HTTP/1.1\r\nHost: x\r\nContent-Length: {MEBIBYTE}\r\n\r\n".encode()
    with _connect(api) as connection:
        for _ in range(3):
            connection.sendall(head + b"x" * MEBIBYTE)
            assert _read_status(connection) == 401
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert _read_status(connection) == 200


def test_an_unread_body_is_not_received_to_its_end(strict: Api) -> None:
    head = b"POST /v1/keys HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999999\r\n\r\n"
    with _connect(strict) as connection, pytest.raises((ConnectionResetError, BrokenPipeError)):
        connection.sendall(head)
        while True:
            connection.sendall(b"x" * 2**16)


def test_headers_without_an_end_are_refused(strict: Api) -> None:
    with _connect(strict) as connection:
        try:
            connection.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 2**22)
        except (ConnectionResetError, BrokenPipeError):
            return
        assert b" 431 " in _read_all(connection).partition(b"\r\n")[0]


def test_connections_that_wait_make_room(strict: Api) -> None:
    with ExitStack() as held:
        idle = [held.enter_context(_connect(strict)) for _ in range(2 * CONNECTIONS)]
        with _connect(strict) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert _read_all(connection).startswith(b"HTTP/1.1 200 ")
        assert _read_all(idle[0]) == b""


def test_a_key_has_a_limited_number_of_requests_at_once(valkey_server: ValkeyServer) -> None:
    with redis.Redis.from_url(valkey_server.url) as broker:
        limiter = Limiter(broker, rate=1.0, burst=1, most_at_once=2)
        key, other = uuid.uuid4(), uuid.uuid4()
        scopes: list[dict[str, Any]] = [{}, {}, {}]
        assert [limiter.enter(key, scope) for scope in scopes] == [True, True, False]
        assert limiter.enter(other, {})
        # A refused request frees no slot, and an ended one frees its slot only once.
        leave(scopes[2])
        assert not limiter.enter(key, {})
        leave(scopes[0])
        leave(scopes[0])
        assert [limiter.enter(key, {}) for _ in range(2)] == [True, False]


def test_requests_of_a_key_end_their_count(strict: Api) -> None:
    with strict.client(strict.new_key("curator")) as client:
        for _ in range(AT_ONCE):
            assert client.get("/v1/datasets").status_code == 200
            assert client.post("/v1/releases", json={}).status_code == 422
            assert client.post("/v1/populations", json={}).status_code == 403


@pytest.mark.parametrize("burst", [5, 40])
def test_processes_share_the_bucket_of_a_key(valkey_server: ValkeyServer, burst: int) -> None:
    with redis.Redis.from_url(valkey_server.url) as broker:
        key = uuid.uuid4()
        both = [Limiter(broker, rate=1e-6, burst=burst, most_at_once=1) for _ in range(2)]
        waits = [both[n % 2].take_token(key) for n in range(2 * burst)]
    assert sum(wait == 0 for wait in waits) == burst
    assert all(wait > 0 for wait in waits if wait)


def test_a_read_is_one_transaction_of_one_statement_beside_that_for_the_key(api: Api) -> None:
    population, _ = api.population(), api.population()
    dataset = api.ready_dataset(population)
    release, finished = api.release(dataset), api.release(dataset)
    api.finish(finished, {"synthetic.csv": b"a\n1\n"})
    paths = [
        f"/v1/populations/{population}",
        "/v1/populations",
        f"/v1/releases/{release}",
        f"/v1/releases/{finished}",
        "/v1/releases",
        "/v1/datasets",
    ]
    client, seen = api.all, []
    engine = api.context.engine
    listeners = {
        "checkout": lambda *_: seen.append("checkout"),
        "begin": lambda _: seen.append("begin"),
        "before_cursor_execute": lambda *_: seen.append("statement"),
        "commit": lambda _: seen.append("commit"),
    }
    for name, listener in listeners.items():
        event.listen(engine, name, listener)
    try:
        for path in paths:
            seen.clear()
            assert client.get(path).status_code == 200
            assert seen == ["checkout", "begin", "statement", "statement", "commit"], path
        seen.clear()
        assert client.get("/v1/mechanisms").status_code == 200
        assert seen == ["checkout", "begin", "statement", "commit"]
    finally:
        for name, listener in listeners.items():
            event.remove(engine, name, listener)


def test_a_connection_that_the_server_closed_is_replaced(postgres_server: PostgresServer) -> None:
    engine = open_engine(postgres_server.url)
    other = open_engine(postgres_server.url)
    find = text("SELECT pg_backend_pid()")
    try:
        with engine.connect() as connection:
            first = connection.scalar(find)
        with other.begin() as connection:
            # Returns when the process has ended, and so its connection.
            assert connection.scalar(text(f"SELECT pg_terminate_backend({first}, 10000)"))
        with engine.connect() as connection:
            assert connection.scalar(find) != first
    finally:
        engine.dispose()
        other.dispose()
