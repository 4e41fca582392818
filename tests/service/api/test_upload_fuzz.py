"""Uploads of arbitrary bytes: no internal error, no partial result, and no repeated content."""

import gzip
import socket
import tempfile
import uuid
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from service.embedded import PostgresServer, ValkeyServer, wait_until
from tests.databases import create_database
from tests.patience import PATIENCE

from .support import (
    CSV,
    HOUSEHOLDS,
    TWO_LEVEL,
    Api,
    problem,
    read_back,
    serving,
    settings_for,
)

# The storage writes parts of 5 MiB, so an upload may break off after one is written.
LIMIT = 12 * 2**20
CANARY = b"canary-4e1d"
KINDS = ["text/csv", "application/gzip", "application/x-gzip", "application/vnd.apache.parquet"]
GONE = '"status": 499'

fuzzed = settings(
    max_examples=60,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

# Possible files: random bytes, text with secret cells, compressed, truncated.
pieces = st.one_of(
    st.binary(max_size=300),
    st.sampled_from([b"", b"\0" * 5000, CSV, CANARY, b"PAR1" + CANARY + b"PAR1", b"\xff\xfe"]),
    st.builds(lambda cut: gzip.compress(CSV + CANARY, mtime=0)[:cut], st.integers(0, 60)),
    st.builds(lambda size: CANARY * (size // len(CANARY)), st.integers(0, 2**17)),
)
bodies = st.lists(pieces, max_size=6)
# Header values that an HTTP library sends: visible characters, also such that mean something.
words = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=60).map(str.strip)
headers = st.fixed_dictionaries(
    {"Content-Type": st.one_of(st.sampled_from([*KINDS, "text/csv; charset=utf-8"]), words)},
    optional={
        "Content-Encoding": st.one_of(st.sampled_from(["gzip", "identity", "br", "GZIP"]), words),
        "X-Request-ID": st.one_of(words, st.just(CANARY.decode() * 2000)),
        "X-Extra": words.map(lambda word: word + CANARY.decode() * 500),
    },
)


@pytest.fixture(scope="module")
def service(postgres_server: PostgresServer, valkey_server: ValkeyServer) -> Iterator[Api]:
    """A service that takes at most twelve mebibytes, on a database and a queue of its own."""
    with tempfile.TemporaryDirectory(prefix="scrim-test-") as folder:
        chosen = settings_for(
            create_database(postgres_server.url),
            valkey_server.url.replace("/0", "/7"),
            Path(folder),
            max_upload_bytes=LIMIT,
        )
        with serving(chosen, Path(folder)) as running:
            yield running


@pytest.fixture(scope="module")
def population(service: Api) -> str:
    return service.population()


@pytest.fixture(autouse=True)
def nothing_is_told(service: Api) -> Iterator[None]:
    """Check that the log never repeats what a test sends, and has no internal error."""
    yield
    log = service.log.getvalue()
    assert CANARY.decode() not in log
    assert "unexpected_error" not in log
    assert '"status": 500' not in log


def check_answer(answer: httpx.Response) -> None:
    """Check that the upload is accepted or refused as a caller's error, without repeating content."""
    assert answer.status_code in {202, 413, 415, 422}, answer.text
    if answer.status_code != 202:
        assert answer.headers["content-type"] == "application/problem+json"
    assert CANARY not in answer.content
    assert CANARY.decode() not in str(answer.headers)


def check_state(service: Api, dataset: str, answer: httpx.Response, body: bytes) -> None:
    """Check that the upload is stored completely or not at all."""
    state = service.all.get(f"/v1/datasets/{dataset}").json()
    kept = objects_of(service, dataset)
    if answer.status_code == 202:
        assert (state["state"], state["missing_tables"]) == ("ingesting", [])
        assert len(kept) == 1
        assert CANARY not in kept[0].read_bytes()
        assert read_back(service, dataset) == body
    else:
        assert (state["state"], state["missing_tables"]) == ("awaiting_content", ["rows"])
        assert kept == []


def objects_of(service: Api, dataset: str) -> list[Path]:
    return [path for path in service.objects() if dataset in str(path)]


@fuzzed
@given(body=bodies, sent=headers)
@example(body=[bytes(LIMIT // 2), bytes(LIMIT // 2)], sent={"Content-Type": "text/csv"})
@example(body=[bytes(LIMIT), b"x"], sent={"Content-Type": "text/csv"})
@example(body=[b"", b"", b""], sent={"Content-Type": "text/csv"})
@example(body=[CSV], sent={"Content-Type": "text/csv", "X-Extra": "x" * 60_000})
def test_anything_is_taken_whole_or_refused(
    service: Api, population: str, body: list[bytes], sent: dict[str, str]
) -> None:
    dataset = service.dataset(population)
    answer = service.upload(dataset, iter(body), headers=sent)
    check_answer(answer)
    check_state(service, dataset, answer, b"".join(body))


@fuzzed
@given(
    table=st.one_of(st.sampled_from(["rows", "groups", "individuals", CANARY.decode()]), words),
    name=st.one_of(st.uuids().map(str), st.just(CANARY.decode())),
)
def test_uploads_to_wrong_places(service: Api, population: str, table: str, name: str) -> None:
    before = service.objects()
    nowhere = service.upload(name, CSV, params={"table": table})
    assert nowhere.status_code in {404, 422}
    assert CANARY not in nowhere.content
    assert service.objects() == before


def test_a_table_may_be_replaced_until_all_have_arrived(service: Api) -> None:
    dataset = service.dataset(service.population(**HOUSEHOLDS), TWO_LEVEL)
    for body in (CANARY, CSV, b"\0"):
        answer = service.upload(dataset, body, params={"table": "groups"})
        assert answer.status_code == 200
        assert len(objects_of(service, dataset)) == 1
    assert read_back(service, dataset, "groups") == b"\0"


def connect(service: Api) -> socket.socket:
    host, port = service.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE)


def request_head(key: str, dataset: str, framing: str) -> bytes:
    return (
        f"PUT /v1/datasets/{dataset}/content HTTP/1.1\r\nHost: x\r\n"
        f"Authorization: Bearer {key}\r\nContent-Type: text/csv\r\n{framing}\r\n\r\n"
    ).encode()


@settings(fuzzed, max_examples=25)
@given(
    sent=st.binary(min_size=200, max_size=500).map(lambda noise: CANARY + noise),
    repeats=st.sampled_from([0, 1, 50, 20_000]),
    is_chunked=st.booleans(),
)
def test_aborted_uploads_leave_nothing(
    service: Api, population: str, sent: bytes, repeats: int, is_chunked: bool
) -> None:
    dataset, key = service.dataset(population), service.new_key("curator")
    gone = service.log.getvalue().count(GONE)
    framing = "Transfer-Encoding: chunked" if is_chunked else f"Content-Length: {LIMIT}"
    frame = b"%x\r\n%b\r\n" % (len(sent), sent) if is_chunked else sent
    with connect(service) as connection:
        connection.sendall(request_head(key, dataset, framing) + frame * repeats)
    wait_until(
        lambda: service.log.getvalue().count(GONE) == gone + 1,
        timeout=PATIENCE,
        what="the end of the request",
    )
    assert objects_of(service, dataset) == []
    assert service.all.get(f"/v1/datasets/{dataset}").json()["state"] == "awaiting_content"


@settings(fuzzed, max_examples=25)
@given(cuts=st.lists(st.integers(1, len(CSV) - 1), max_size=8), size=st.sampled_from([1, 7, 4096]))
def test_chunk_boundaries_do_not_matter(
    service: Api, population: str, cuts: list[int], size: int
) -> None:
    dataset, key = service.dataset(population), service.new_key("curator")
    marks = sorted({0, len(CSV), *cuts})
    parts = [CSV[a:b] for a, b in pairwise(marks)]
    body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    message = request_head(key, dataset, "Transfer-Encoding: chunked") + body
    with connect(service) as connection:
        for start in range(0, len(message), size):
            connection.sendall(message[start : start + size])
        answer = connection.recv(2**16)
    assert answer.startswith(b"HTTP/1.1 202 ")
    assert read_back(service, dataset) == CSV


@pytest.mark.parametrize(
    "framing",
    [
        "Content-Length: -1",
        "Content-Length: many",
        "Content-Length: 5\r\nContent-Length: 6",
        f"Content-Length: {10**30}",
        "Transfer-Encoding: chunked\r\nX: " + CANARY.decode() * 10_000,
    ],
)
def test_frames_that_are_none(service: Api, population: str, framing: str) -> None:
    dataset, key = service.dataset(population), service.new_key("curator")
    with connect(service) as connection:
        connection.sendall(request_head(key, dataset, framing) + b"zz\r\n" + CANARY)
        answer = connection.recv(2**16)
    assert answer.split(b" ")[1] in {b"400", b"413", b"422", b"431"}
    assert CANARY not in answer
    assert objects_of(service, dataset) == []


def test_a_dataset_that_is_not_there_any_more(service: Api, population: str) -> None:
    dataset = service.dataset(population)
    assert service.all.delete(f"/v1/datasets/{dataset}").status_code == 204
    answer = service.upload(dataset, CANARY)
    problem(answer, 409, "conflict")
    assert objects_of(service, dataset) == []
    problem(service.upload(str(uuid.uuid4()), CANARY), 404, "not-found")
