"""What was learnt from public data, on the storage that the workers share."""

from pathlib import Path

from service.data.storage import open_storage
from worker.pretrained import PRETRAINED, StoredCache


def test_what_was_put_is_there_for_every_worker(tmp_path: Path) -> None:
    first, second = (StoredCache(open_storage(f"file://{tmp_path}")) for _ in range(2))
    assert first.get("a1") is None
    first.put("a1", b"weights")
    assert second.get("a1") == b"weights"
    assert second.get("a2") is None
    assert {found.key for found in second.storage.objects(PRETRAINED)} == {f"{PRETRAINED}/a1"}


def test_two_workers_may_learn_the_same(tmp_path: Path) -> None:
    first, second = (StoredCache(open_storage(f"file://{tmp_path}")) for _ in range(2))
    first.put("a1", b"weights")
    second.put("a1", b"weights")
    assert first.get("a1") == b"weights"
