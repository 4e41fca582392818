"""Further sets of rows: their files, interruptions between them, and their place in the certificate."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from scrim.verify import verify
from tests.worker.support import H_GEM, HOUSEHOLDS, TWO_LEVEL, Stack, households
from worker import artifacts, reporting
from worker.errors import Abandoned
from worker.ingest import ingest_dataset
from worker.releases import run_release

pytestmark = pytest.mark.random

DRAWN = {"rows": 60, "formats": ["csv", "parquet"], "draws": 3, "certify": {}}
SETS = [f"synthetic_{number}" for number in (1, 2, 3)]


def after_a_draw(action: Callable[[], None], patch: pytest.MonkeyPatch) -> None:
    """Run an action once, when the first further set of rows is stored."""
    waiting = [action]

    def hook(found: str) -> None:
        if found == "after-draw" and waiting:
            waiting.pop()()

    patch.setattr(artifacts, "crash_at", hook)


def hashes(stack: Stack, release: UUID) -> dict[str, str]:
    """The artifacts' hashes by name, without the certificate, which contains the date."""
    found = {each["name"]: each["sha256"] for each in stack.release(release)["artifacts"]}
    del found["certificate.json"]
    return found


def test_every_set_is_an_artifact_and_verifies(
    stack: Stack, population: UUID, dataset: UUID, tmp_path: Path
) -> None:
    release = stack.submit(dataset, outputs=DRAWN)
    run_release(stack.context, release)
    shown = stack.release(release)
    assert shown["state"] == "succeeded"
    assert shown["progress"] == {"done": 12, "total": 12}  # four fits of three rounds
    for each in shown["artifacts"]:
        (tmp_path / each["name"]).write_bytes(stack.artifact(release, each["name"]))
    for name in SETS:
        assert (tmp_path / f"{name}.parquet").exists()
        rows = list(csv.DictReader((tmp_path / f"{name}.csv").read_text().splitlines()))
        assert len(rows) == 60 and list(rows[0]) == ["sex", "age", "town"]
    assert len({(tmp_path / f"{name}.csv").read_bytes() for name in ("synthetic", *SETS)}) == 4
    report = verify(tmp_path / "certificate.json", list(tmp_path.iterdir()))
    assert report.ok and report.unchecked == ()
    spent = sum(each.price_units for each in stack.journal(release))
    assert len(stack.journal(release)) == 10  # no operation more than without further sets
    assert stack.account(population).spent_units == spent


def test_killed_between_two_sets(
    stack: Stack, dataset: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The resumed job reads no private row, pays nothing, and writes the same files."""
    release = stack.submit(dataset, outputs=DRAWN)
    stored: list[Path] = []

    def stop() -> None:
        stored.extend(stack.objects("artifacts"))
        raise Abandoned

    before = stack.objects("artifacts")
    after_a_draw(stop, monkeypatch)
    run_release(stack.context, release)
    assert stack.release(release)["state"] == "running"
    journal = stack.journal(release)
    for path in stack.objects(f"datasets/{dataset}/tables/1/rows"):
        path.write_bytes(b"a resumed job reads no row")
    run_release(stack.context, release)
    assert stack.release(release)["state"] == "succeeded"
    assert stack.journal(release) == journal
    # Files are stored under their hash: those of the first attempt are among those of the second.
    kept = {path.name for path in set(stored) - set(before)}
    assert len(kept) == 7 and kept <= {path.name for path in stack.objects("artifacts")}
    assert set(hashes(stack, release).values()) >= kept


def test_cancelled_between_two_sets(
    stack: Stack, population: UUID, dataset: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = stack.submit(dataset, outputs=DRAWN | {"draws": 20})
    after_a_draw(lambda: stack.cancel(release), monkeypatch)
    monkeypatch.setattr(reporting, "REPORT_SECONDS", 0.01)
    run_release(stack.context, release)
    shown = stack.release(release)
    assert (shown["state"], shown["artifacts"]) == ("cancelled", [])
    assert stack.account(population).reserved_units == 0


def test_a_dry_run_draws_them_too(stack: Stack, population: UUID) -> None:
    dataset = stack.dataset(population)
    release = stack.submit(dataset, dry_run=True, outputs=DRAWN)
    run_release(stack.context, release)
    assert hashes(stack, release).keys() >= {f"{name}.csv" for name in SETS}
    assert stack.account(population).spent_units == 0


def test_groups_and_individuals_are_two_files_of_each_set(stack: Stack) -> None:
    dataset = stack.dataset(stack.population(**HOUSEHOLDS), TWO_LEVEL)
    for table, content in zip(("groups", "individuals"), households(100), strict=True):
        stack.upload(dataset, content, table=table)
    ingest_dataset(stack.context, dataset)
    release = stack.submit(dataset, **H_GEM, outputs={"rows": 30, "draws": 2})
    run_release(stack.context, release)
    certificate = json.loads(stack.artifact(release, "certificate.json"))["certificate"]
    for number in (1, 2):
        assert f"synthetic_{number}_individuals.csv" in certificate["artifacts"]
        groups = stack.artifact(release, f"synthetic_{number}_groups.csv").decode().splitlines()
        assert len(groups) == 31
