"""Uploads: streamed, encrypted, bounded, whole or not at all."""

import gzip
import socket
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from service.data.task_queue import UPLOADS
from service.embedded import ValkeyServer, wait_until
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
    stored_upload,
)

LIMIT = 3 * 2**20


@pytest.fixture(scope="module")
def small(owner_url: Any, valkey_server: ValkeyServer) -> Iterator[Api]:
    """A service that takes small uploads only, on a database of its own."""
    with tempfile.TemporaryDirectory(prefix="scrim-test-") as folder:
        settings = settings_for(
            create_database(str(owner_url.render_as_string(hide_password=False))),
            valkey_server.url,
            Path(folder),
            max_upload_bytes=LIMIT,
            max_body_bytes=10_000,
        )
        with serving(settings, Path(folder)) as running:
            yield running


def test_upload_is_stored_encrypted_and_rings_the_worker(
    api: Api, valkey_server: ValkeyServer
) -> None:
    dataset = api.dataset(api.population())
    answer = api.upload(dataset)
    assert answer.status_code == 202
    assert answer.json()["state"] == "ingesting"
    assert read_back(api, dataset) == CSV
    row, upload = stored_upload(api, dataset)
    assert upload.media_type == "text/csv"
    assert row.content_hash is not None and len(row.content_hash) == 32
    with redis.Redis.from_url(valkey_server.url) as broker:
        messages = broker.lrange(UPLOADS, 0, -1)
    mine = [message for message in messages if dataset.encode() in message]
    assert len(mine) == 1 and b"dataset.ingest" in mine[0]
    problem(api.upload(dataset), 409, "conflict")
    assert read_back(api, dataset) == CSV


def test_media_types(api: Api) -> None:
    population = api.population()
    plain, zipped, parquet = (api.dataset(population) for _ in range(3))
    # Compressed once: the format contains the time.
    compressed = gzip.compress(CSV)
    gzip_headers = {"Content-Type": "text/csv; charset=utf-8", "Content-Encoding": "gzip"}
    assert api.upload(plain, compressed, headers=gzip_headers).status_code == 202
    assert stored_upload(api, plain)[1].media_type == "application/gzip"
    assert read_back(api, plain) == compressed
    headers = {"Content-Type": "application/gzip"}
    assert api.upload(zipped, compressed, headers=headers).status_code == 202
    headers = {"Content-Type": "application/vnd.apache.parquet"}
    assert api.upload(parquet, b"PAR1", headers=headers).status_code == 202
    other = api.dataset(population)
    for headers in (
        {"Content-Type": "application/json"},
        {"Content-Type": "text/csv", "Content-Encoding": "br"},
        {"Content-Type": ""},
    ):
        problem(api.upload(other, headers=headers), 415, "unsupported-media-type")


def test_two_level_upload(api: Api) -> None:
    dataset = api.dataset(api.population(**HOUSEHOLDS), TWO_LEVEL)
    problem(api.upload(dataset), 422, "invalid")
    problem(api.upload(dataset, params={"table": "rows"}), 422, "invalid")
    first = api.upload(dataset, b"first", params={"table": "groups"})
    assert first.status_code == 200
    assert first.json()["missing_tables"] == ["individuals"]
    before = len(api.objects())
    again = api.upload(dataset, b"second", params={"table": "groups"})
    assert again.status_code == 200
    assert len(api.objects()) == before
    last = api.upload(dataset, b"third", params={"table": "individuals"})
    assert last.status_code == 202 and last.json()["state"] == "ingesting"
    assert read_back(api, dataset, "groups") == b"second"
    assert read_back(api, dataset, "individuals") == b"third"


def test_uploads_above_the_limit_leave_nothing(small: Api) -> None:
    dataset = small.dataset(small.population())
    problem(small.upload(dataset, bytes(LIMIT + 1)), 413, "too-large")

    def unannounced() -> Iterator[bytes]:
        for _ in range(LIMIT // 2**16 + 1):
            yield bytes(2**16)

    problem(small.upload(dataset, unannounced()), 413, "too-large")
    problem(small.upload(dataset, b""), 422, "invalid")
    assert small.objects() == []
    assert small.upload(dataset, bytes(LIMIT)).status_code == 202


def test_json_above_the_limit_is_refused(small: Api) -> None:
    body = {"name": "x" * 20_000}
    problem(small.all.post("/v1/datasets", json=body), 413, "too-large")


def test_an_interrupted_upload_leaves_nothing(small: Api) -> None:
    dataset = small.dataset(small.population())
    before = small.objects()
    key = small.new_key("curator")
    host, port = small.url.removeprefix("http://").split(":")
    for _ in range(3):
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(
                f"PUT /v1/datasets/{dataset}/content HTTP/1.1\r\nHost: x\r\n"
                f"Authorization: Bearer {key}\r\nContent-Type: text/csv\r\n"
                f"Content-Length: {LIMIT}\r\n\r\n".encode()
            )
            connection.sendall(bytes(2**20))
    wait_until(
        lambda: small.log.getvalue().count('"status": 499') == 3,
        timeout=PATIENCE,
        what="the end of the requests",
    )
    assert small.objects() == before
    assert small.all.get(f"/v1/datasets/{dataset}").json()["state"] == "awaiting_content"
    assert small.upload(dataset).status_code == 202


def test_upload_to_nowhere(api: Api) -> None:
    before = len(api.objects())
    problem(api.upload(str(uuid.uuid4())), 404, "not-found")
    assert len(api.objects()) == before
