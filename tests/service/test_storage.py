"""One contract for the local folder and for S3."""

import asyncio
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from service.data.storage import Storage, open_storage
from tests.s3 import create_bucket, running_s3, s3_settings

MEBIBYTE = 2**20


@pytest.fixture(scope="module")
def s3_endpoint() -> Iterator[str]:
    """A local S3 server."""
    with running_s3() as endpoint:
        yield endpoint


@pytest.fixture(params=["folder", "s3"])
def storage(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    if request.param == "folder":
        with tempfile.TemporaryDirectory(prefix="scrim-test-") as folder:
            yield open_storage(f"file://{folder}/with%20space")
        return
    endpoint = request.getfixturevalue("s3_endpoint")
    for name, value in s3_settings(endpoint).items():
        monkeypatch.setenv(name, value)
    yield open_storage(f"s3://{create_bucket(endpoint)}/some/prefix")


async def arriving(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def put(storage: Storage, key: str, *pieces: bytes) -> None:
    async def run() -> None:
        await storage.put(key, arriving(*pieces))

    asyncio.run(run())


def get(storage: Storage, key: str, start: int = 0, end: int | None = None) -> bytes:
    async def run() -> bytes:
        return b"".join([piece async for piece in storage.get(key, start=start, end=end)])

    return asyncio.run(run())


def test_what_was_put_comes_back(storage: Storage) -> None:
    content = os.urandom(11 * MEBIBYTE)
    put(storage, "a/b", content[:7], content[7 : 6 * MEBIBYTE], content[6 * MEBIBYTE :])
    assert get(storage, "a/b") == content
    assert b"".join(storage.read("a/b")) == content
    storage.write("a/c", iter([b"one", b"two"]))
    assert get(storage, "a/c") == b"onetwo"


def test_ranges(storage: Storage) -> None:
    storage.write("key", [b"0123456789"])
    assert get(storage, "key", 2, 5) == b"234"
    assert get(storage, "key", 7) == b"789"
    assert b"".join(storage.read("key", start=9)) == b"9"


def test_an_interrupted_put_leaves_nothing(storage: Storage) -> None:
    async def breaking() -> AsyncIterator[bytes]:
        for _ in range(12):
            yield bytes(MEBIBYTE)
        raise ConnectionError("gone")

    async def run() -> None:
        await storage.put("a/b", breaking())

    with pytest.raises(ConnectionError, match="gone"):
        asyncio.run(run())
    assert storage.keys("a") == []
    with pytest.raises(FileNotFoundError):
        get(storage, "a/b")


def test_deleting(storage: Storage) -> None:
    for key in ("one/x", "one/y/z", "onemore/x"):
        storage.write(key, [b"x"])
    storage.delete_all("one")
    assert storage.keys("one") == []
    assert storage.keys("onemore") == ["onemore/x"]
    storage.delete("onemore/x")
    storage.delete("onemore/x")


def test_objects_tell_when_they_were_written(storage: Storage) -> None:
    # A second earlier: clocks of storages may count whole seconds.
    before = datetime.now(UTC) - timedelta(seconds=1)
    storage.write("a/b", [b"x"])
    (found,) = storage.objects("a")
    assert found.key == "a/b"
    assert before <= found.written_at <= datetime.now(UTC) + timedelta(seconds=1)


def test_whole_objects_are_not_unfinished(storage: Storage) -> None:
    storage.write("a/b", [b"x"])
    assert storage.delete_unfinished(before=datetime.now(UTC) + timedelta(days=1)) == 0
    assert storage.keys("a") == ["a/b"]


def test_content_is_named_by_its_hash_and_kept_once(storage: Storage) -> None:
    stored = storage.write_content("artifacts", iter([b"one", b"two"]))
    digest = hashlib.sha256(b"onetwo").hexdigest()
    assert (stored.sha256, stored.size) == (digest, 6)
    assert storage.write_content("artifacts", [b"onetwo"]) == stored
    assert storage.keys("artifacts") == [stored.key]
    assert storage.keys("drafts") == []
    assert get(storage, stored.key) == b"onetwo"


def test_check_passes_and_leaves_nothing(storage: Storage) -> None:
    storage.check()
    assert storage.keys("probes") == []


def test_a_place_that_cannot_be_is_refused(data_dir: Path) -> None:
    (data_dir / "file").write_text("in the way")
    with pytest.raises(OSError):
        open_storage(f"file://{data_dir}/file/objects")


def test_memory_is_constant() -> None:
    program = """
import asyncio, os, resource, sys
from service.data.storage import open_storage
async def arriving():
    for _ in range(400):
        yield bytes(2**20)
async def main():
    storage = open_storage(sys.argv[1])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await storage.put("big", arriving())
    async for piece in storage.get("big"):
        pass
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024, flush=True)
    # The storage's own threads may still let go of Python objects, which an exit would trip over.
    os._exit(0)
asyncio.run(main())
"""
    with tempfile.TemporaryDirectory(prefix="scrim-test-") as folder:
        done = subprocess.run(
            [sys.executable, "-c", program, f"file://{folder}"],
            capture_output=True,
            text=True,
            check=True,
        )
    assert int(done.stdout) < 100
