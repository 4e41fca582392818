"""Stored rows and models that were damaged are refused with a clear reason, and never used."""

from uuid import UUID

import pytest

from service.data.errors import ArtifactDamaged
from tests.worker.support import Stack
from worker.models import ModelCache
from worker.releases import run_release

ONE_WAY = [{"type": "marginals", "attributes": [["sex"]]}]


@pytest.mark.random
def test_a_damaged_model_answers_nothing(stack: Stack, dataset: UUID) -> None:
    release = stack.submit(dataset)
    run_release(stack.context, release)
    # A new cache each time: a cache keeps the models that it has checked.
    assert ModelCache(stack.context).answer(release, ONE_WAY)
    (told,) = [each for each in stack.release(release)["artifacts"] if each["name"] == "model"]
    (path,) = stack.objects(f"artifacts/{told['sha256'][:2]}/{told['sha256']}")
    content = path.read_bytes()
    for damaged in (content[:-1] + bytes([content[-1] ^ 1]), content[:-1], None):
        path.unlink()
        if damaged is not None:
            path.write_bytes(damaged)
        with pytest.raises(ArtifactDamaged):
            ModelCache(stack.context).answer(release, ONE_WAY)
        with pytest.raises(ArtifactDamaged):
            ModelCache(stack.context).sample(release, 1)
        path.write_bytes(content)
    assert f'"release_id": "{release}"' in stack.log.getvalue()


@pytest.mark.parametrize("damage", ["changed", "missing"])
def test_damaged_rows_end_a_release(
    stack: Stack, population: UUID, dataset: UUID, damage: str
) -> None:
    release = stack.submit(dataset)
    (path,) = [
        each for each in stack.objects(f"datasets/{dataset}/tables") if each.name != "manifest"
    ]
    content = path.read_bytes()
    path.unlink()
    if damage == "changed":
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    run_release(stack.context, release)
    shown = stack.release(release)
    assert (shown["state"], shown["error"]["type"]) == ("failed", "/problems/dataset-damaged")
    assert stack.account(population).spent_units == 0
    assert stack.account(population).reserved_units == 0


@pytest.mark.random
def test_a_storage_that_is_away_is_an_outage(stack: Stack, dataset: UUID) -> None:
    release = stack.submit(dataset)
    objects = stack.folder / "objects"
    away = objects.rename(stack.folder / "away")
    objects.mkdir()
    try:
        run_release(stack.context, release)
    finally:
        for path in sorted(objects.rglob("*"), reverse=True):
            path.rmdir()
        objects.rmdir()
        away.rename(objects)
    assert stack.release(release)["state"] == "running"
    stack.expire_lease(release)
    run_release(stack.context, release)
    assert stack.release(release)["state"] == "succeeded"
