"""Uploads become encrypted rows exactly once, without leftovers."""

import errno
import gzip
import io
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy.exc import OperationalError

from service.data import datasets
from service.data.crypto import encrypt_pieces, unwrap_key, upload_purpose
from synth.table import Chunk
from tests.worker.support import OWNED_SCHEMA, SCHEMA, Stack, csv_rows
from worker import chunks, people
from worker.chunks import ChunkStore
from worker.encrypted_file import BLOCK_BYTES, _EncryptedFile, encrypted_copy
from worker.ingest import ingest_dataset
from worker.memory import HEADROOM_BYTES

PARQUET = "application/vnd.apache.parquet"
WAITS = """
    SELECT outages FROM dataset
    WHERE id = :id AND lease_until IS NULL AND resume_at > clock_timestamp()
"""


def as_parquet(content: bytes) -> bytes:
    header, *lines = content.decode().split()
    columns = zip(*(line.split(",") for line in lines), strict=True)
    buffer = io.BytesIO()
    pq.write_table(pa.table(dict(zip(header.split(","), columns, strict=True))), buffer)
    return buffer.getvalue()


def dictionary_bomb() -> bytes:
    """Some hundred bytes: one text of three megabytes, in 3,000 rows."""
    rows = pa.array(np.zeros(3000, np.int32))
    text = pa.DictionaryArray.from_arrays(rows, pa.array(["CANARY" * 500_000]))
    buffer = io.BytesIO()
    pq.write_table(pa.table({"sex": text, "age": rows, "town": rows}), buffer, compression="zstd")
    return buffer.getvalue()


def chunk_store_of(stack: Stack, dataset: UUID) -> ChunkStore:
    """Where a dataset's rows are."""
    with stack.context.transaction() as work:
        row = datasets.get(work.session, dataset)
    assert row.wrapped_key is not None and row.content_hash is not None
    key = unwrap_key(row.wrapped_key, dataset, master_key=stack.context.settings.master_key_bytes)
    return ChunkStore(stack.context.storage, dataset, row.lease_epoch, row.content_hash, key)


def stored(stack: Stack, dataset: UUID, table: str = "rows") -> list[Chunk]:
    """The rows of a dataset, as a job would read them."""
    chunk_store = chunk_store_of(stack, dataset)
    return list(chunk_store.read(table, chunk_store.counts()[table]))


def column(found: list[Chunk], name: str) -> Any:
    return np.concatenate([chunk[name] for chunk in found])


def state_of(stack: Stack, dataset: UUID) -> tuple[str, str | None]:
    shown = stack.show("datasets", dataset)
    return shown["state"], shown["reason"]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (csv_rows(), "text/csv"),
        (gzip.compress(csv_rows()), "application/gzip"),
        (as_parquet(csv_rows()), PARQUET),
    ],
)
def test_formats(stack: Stack, population: UUID, content: bytes, kind: str) -> None:
    dataset = stack.dataset(population)
    stack.upload(dataset, content, kind=kind)
    ingest_dataset(stack.context, dataset)
    assert state_of(stack, dataset) == ("ready", None)
    found = stored(stack, dataset)
    ages = [int(line.split(",")[1]) for line in csv_rows().decode().split()[1:]]
    np.testing.assert_array_equal(column(found, "age"), ages)
    assert not stack.objects(f"datasets/{dataset}/uploads")
    assert stack.scalar("SELECT count(*) FROM upload WHERE dataset_id = :id", id=dataset) == 0
    before = stack.objects(f"datasets/{dataset}")
    ingest_dataset(stack.context, dataset)
    assert stack.objects(f"datasets/{dataset}") == before


@pytest.mark.parametrize("rows_at_once", [2**23, 30])
def test_people_keep_so_many_rows(
    stack: Stack, rows_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people, "OWNERS_AT_ONCE", rows_at_once)
    monkeypatch.setattr(chunks, "STORED_CHUNK_BYTES", 500)
    dataset = stack.dataset(stack.population(unit="person", max_rows_per_person=3), OWNED_SCHEMA)
    stack.upload(dataset, csv_rows(200))
    ingest_dataset(stack.context, dataset)
    assert state_of(stack, dataset) == ("ready", None)
    found = stored(stack, dataset)
    owners = Counter(bytes(each) for each in column(found, "pid"))
    assert len(owners) == 50 and set(owners.values()) == {3}
    assert not [path for path in stack.objects(f"datasets/{dataset}") if "staged" in str(path)]


def test_every_row_must_have_an_owner(stack: Stack) -> None:
    dataset = stack.dataset(stack.population(unit="household", max_household_size=3), OWNED_SCHEMA)
    stack.upload(dataset, csv_rows(20) + b"F,1,a,\n")
    ingest_dataset(stack.context, dataset)
    state, reason = state_of(stack, dataset)
    assert state == "rejected" and reason is not None and "'pid'" in reason
    assert not stack.objects(f"datasets/{dataset}")


@pytest.mark.parametrize(
    ("content", "kind", "told"),
    [
        (b"sex,age\nF,1\n", "text/csv", "'town' is missing"),
        (b"sex,age,town\nF,1,CANARY,CANARY\n", "text/csv", "4 fields"),
        (b"CANARY", PARQUET, "not Parquet"),
        (b"\x1f\x8bCANARY", "application/gzip", "gzip"),
        (dictionary_bomb(), PARQUET, "'sex' holds a cell of more than 1 MiB"),
        (
            gzip.compress(b"sex,age,town\n" + b"F,1,CANARY\n" * 6_500_000),
            "application/gzip",
            "250 times",
        ),
    ],
)
def test_rejections_tell_structure_only(
    stack: Stack, population: UUID, content: bytes, kind: str, told: str
) -> None:
    dataset = stack.dataset(population)
    stack.upload(dataset, content, kind=kind)
    ingest_dataset(stack.context, dataset)
    state, reason = state_of(stack, dataset)
    assert state == "rejected" and reason is not None
    assert told in reason and "CANARY" not in reason
    assert "CANARY" not in stack.log.getvalue()
    assert not stack.objects(f"datasets/{dataset}")


@pytest.mark.parametrize("damage", ["changed", "taken from elsewhere", "encrypted anew"])
def test_damaged_uploads_are_rejected(stack: Stack, population: UUID, damage: str) -> None:
    dataset, other = stack.uploaded(population), stack.uploaded(population)
    (path,) = stack.objects(f"datasets/{dataset}/uploads")
    content = path.read_bytes()
    content = {
        "changed": content[:-1] + bytes([content[-1] ^ 1]),
        "taken from elsewhere": stack.objects(f"datasets/{other}/uploads")[0].read_bytes(),
        # Readable, but not the content of the dataset's hash, which a reservation refers to.
        "encrypted anew": b"".join(
            encrypt_pieces(
                chunk_store_of(stack, dataset).data_key,
                [csv_rows()],
                purpose=upload_purpose("rows"),
            )
        ),
    }[damage]
    path.write_bytes(content)
    ingest_dataset(stack.context, dataset)
    state, reason = state_of(stack, dataset)
    assert state == "rejected" and reason is not None and "damaged" in reason


@pytest.mark.parametrize(
    "error",
    [
        OperationalError("SELECT", {}, Exception("gone")),
        OSError(errno.ENOSPC, "No space left on device"),
        MemoryError(),
        pa.ArrowMemoryError("malloc failed"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_outage_leaves_it_to_the_next(
    stack: Stack, population: UUID, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """However often that happens, the file is not rejected."""
    dataset = stack.uploaded(population)

    def fail(*_: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(ChunkStore, "seal", fail)
        for number in range(1, 4):
            ingest_dataset(stack.context, dataset)
            assert state_of(stack, dataset) == ("ingesting", None)
            assert stack.scalar(WAITS, id=dataset) == number
    ingest_dataset(stack.context, dataset)
    assert state_of(stack, dataset)[0] == "ready"
    left = stack.objects(f"datasets/{dataset}")
    assert left == stack.objects(f"datasets/{dataset}/tables/4/")


def test_an_ingest_may_use_no_more_memory_than_it_is_given(
    stack: Stack, population: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = stack.uploaded(population)
    write = ChunkStore.write

    def write_large(chunk_store: ChunkStore, table: str, found: Iterator[Chunk]) -> int:
        np.ones(2 * HEADROOM_BYTES, np.int8)
        return write(chunk_store, table, found)

    monkeypatch.setitem(vars(stack.context.settings), "worker_memory_bytes", 1)
    with monkeypatch.context() as patch:
        patch.setattr(ChunkStore, "write", write_large)
        ingest_dataset(stack.context, dataset)
    assert state_of(stack, dataset) == ("ingesting", None)
    ingest_dataset(stack.context, dataset)
    assert state_of(stack, dataset)[0] == "ready"


def test_a_zombie_destroys_nothing(
    stack: Stack, population: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One worker sleeps right after its claim, and wakes up when another one is done."""
    dataset = stack.uploaded(population)
    remove = ChunkStore.remove_earlier

    def sleep_first(chunk_store: ChunkStore) -> None:
        if chunk_store.epoch == 1:
            stack.scalar("UPDATE dataset SET lease_until = now() WHERE id = :id", id=dataset)
            ingest_dataset(stack.context, dataset)
            assert state_of(stack, dataset)[0] == "ready"
        remove(chunk_store)

    monkeypatch.setattr(ChunkStore, "remove_earlier", sleep_first)
    ingest_dataset(stack.context, dataset)
    assert state_of(stack, dataset)[0] == "ready"
    assert len(column(stored(stack, dataset), "age")) == 200


def test_bugs_are_told_by_reference(
    stack: Stack, population: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("CANARY")

    monkeypatch.setattr(ChunkStore, "seal", fail)
    dataset = stack.uploaded(population)
    ingest_dataset(stack.context, dataset)
    state, reason = state_of(stack, dataset)
    assert state == "rejected" and reason is not None
    assert reason.split()[3] in stack.log.getvalue()
    assert "CANARY" not in reason + stack.log.getvalue()


def test_deleted_meanwhile(stack: Stack, population: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = stack.uploaded(population)
    seal = ChunkStore.seal

    def delete_first(chunk_store: ChunkStore, counts: dict[str, int]) -> None:
        assert stack.http.delete(f"/v1/datasets/{dataset}").status_code == 204
        seal(chunk_store, counts)

    monkeypatch.setattr(ChunkStore, "seal", delete_first)
    ingest_dataset(stack.context, dataset)
    assert state_of(stack, dataset)[0] == "deleted"
    assert not stack.objects(f"datasets/{dataset}")


def test_nothing_is_stored_in_the_clear(stack: Stack, population: UUID) -> None:
    dataset = stack.dataset(population, {"columns": [SCHEMA["columns"][1]]})
    stack.upload(dataset, b"age\n" + b"77\n" * 5000)
    ingest_dataset(stack.context, dataset)
    for path in stack.objects(f"datasets/{dataset}"):
        assert b"\x4d" * 16 not in path.read_bytes()


def test_spool_can_be_searched_and_is_encrypted(tmp_path: Path) -> None:
    plain = os.urandom(BLOCK_BYTES) + b"CANARY" * BLOCK_BYTES + os.urandom(10)
    pieces = [plain[i : i + 10_000] for i in range(0, len(plain), 10_000)]
    with encrypted_copy(iter(pieces), tmp_path) as file:
        assert list(tmp_path.iterdir()) == []
        assert file.read() == plain
        for start in (0, BLOCK_BYTES - 3, 3 * BLOCK_BYTES, len(plain) - 5, len(plain)):
            file.seek(start)
            assert file.read(20) == plain[start : start + 20]
        assert file.seek(-4, io.SEEK_END) == len(plain) - 4
        assert isinstance(file, io.BufferedReader) and isinstance(file.raw, _EncryptedFile)
        on_disk = Path(f"/proc/self/fd/{file.raw._file.fileno()}").read_bytes()
        assert len(on_disk) > len(plain) and b"CANARY" not in on_disk
    with encrypted_copy([], tmp_path) as file:
        assert file.read() == b""
