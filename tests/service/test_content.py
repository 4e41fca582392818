"""Content is compared with its hash before its first byte is returned."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.data import content as module
from service.data.content import CheckedContent, DamagedContent
from service.data.storage import ObjectVersion, Storage, StoredContent, open_storage
from tests.s3 import create_bucket, running_s3, s3_settings

CONTENT = bytes(range(256)) * 10


class CountingStorage(Storage):
    """A storage that counts how often an object was read from its first byte to its last."""

    whole_reads = 0

    def read(self, key: str, **options: Any) -> Iterator[bytes]:
        self.whole_reads += not options.get("start") and options.get("end") is None
        return super().read(key, **options)


@pytest.fixture(scope="module")
def s3_endpoint() -> Iterator[str]:
    """A local S3 server."""
    with running_s3() as endpoint:
        yield endpoint


@pytest.fixture(params=["folder", "s3"])
def storage(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> CountingStorage:
    if request.param == "folder":
        opened = open_storage(tmp_path.as_uri())
    else:
        endpoint = request.getfixturevalue("s3_endpoint")
        for name, value in s3_settings(endpoint).items():
            monkeypatch.setenv(name, value)
        opened = open_storage(f"s3://{create_bucket(endpoint)}")
    return CountingStorage(opened._store)


@pytest.fixture
def stored(storage: CountingStorage) -> StoredContent:
    return storage.write_content("artifacts", [CONTENT])


def sent(checked: CheckedContent, stored: StoredContent, **part: int) -> bytes:
    async def run() -> bytes:
        return b"".join([piece async for piece in checked.get(stored, **part)])

    return asyncio.run(run())


def test_content_that_matches_is_handed_out(
    storage: CountingStorage, stored: StoredContent
) -> None:
    checked = CheckedContent(storage)
    assert b"".join(checked.read(stored)) == sent(checked, stored) == CONTENT
    assert b"".join(checked.read(stored, start=5, end=9)) == CONTENT[5:9]
    assert sent(checked, stored, start=5, end=9) == CONTENT[5:9]


def test_ranges_and_repetitions_are_not_compared_again(
    storage: CountingStorage, stored: StoredContent
) -> None:
    checked = CheckedContent(storage)
    for start in range(10):
        assert sent(checked, stored, start=start, end=start + 1) == CONTENT[start : start + 1]
    assert storage.whole_reads == 1


@pytest.mark.parametrize(
    "damaged", [CONTENT[:-1], CONTENT + b"x", CONTENT[:-1] + b"x", b"", None], ids=repr
)
@pytest.mark.parametrize("known", [False, True], ids=["unread", "read before"])
def test_damage_is_noticed_before_the_first_byte(
    storage: CountingStorage, stored: StoredContent, damaged: bytes | None, known: bool
) -> None:
    checked = CheckedContent(storage)
    if known:
        sent(checked, stored)
    # Deleted first: in a folder, the new file then differs, whatever its time.
    storage.delete(stored.key)
    if damaged is not None:
        storage.write(stored.key, [damaged])
    for part in ({}, {"start": 0, "end": 1}):
        with pytest.raises(DamagedContent):
            checked.read(stored, **part)
        with pytest.raises(DamagedContent):
            checked.get(stored, **part)


def test_content_that_is_replaced_after_the_comparison_is_compared_again(
    storage: CountingStorage, stored: StoredContent
) -> None:
    versions = [storage.version(stored.key)]

    class Slow(CheckedContent):
        def _check(self, content: StoredContent, version: ObjectVersion) -> None:
            super()._check(content, version)
            if len(versions) == 1:
                storage.delete(stored.key)
                storage.write(stored.key, [CONTENT[:-1] + b"x"])
                versions.append(storage.version(stored.key))

    with pytest.raises(DamagedContent):
        Slow(storage).read(stored)
    assert len(versions) == 2


def test_what_is_remembered_is_bounded(
    storage: CountingStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_REMEMBERED", 2)
    checked = CheckedContent(storage)
    several = [storage.write_content("artifacts", [bytes([number])]) for number in range(3)]
    for each in several:
        sent(checked, each)
    assert storage.whole_reads == 3
    sent(checked, several[-1])
    assert storage.whole_reads == 3
    sent(checked, several[0])
    assert storage.whole_reads == 4
