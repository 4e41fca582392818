"""A release from claim to certificate."""

import base64
import hashlib
import json
from datetime import UTC, datetime, time
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from scrim.spec.budget import units_of_epsilon
from scrim.verify import verify
from service.data import progress
from service.data.context import Context
from service.data.ledger.anchor import unseal
from service.data.ledger.errors import DatabaseBehind
from synth.models.released import ReleasedModel
from tests.worker.support import Stack, csv_rows
from worker.ingest import ingest_dataset
from worker.releases import run_release

pytestmark = pytest.mark.random

CERTIFIED = {"rows": 60, "formats": ["csv", "parquet"], "certify": {}}


def test_success(stack: Stack, population: UUID, dataset: UUID) -> None:
    release = stack.submit(dataset, outputs=CERTIFIED, publish=True)
    run_release(stack.context, release)
    shown = stack.release(release)
    assert shown["state"] == "succeeded" and shown["error"] is None
    assert shown["progress"] == {"done": 3, "total": 3}
    assert {each["name"] for each in shown["artifacts"]} == {
        *("synthetic.csv", "synthetic.parquet", "answers.csv", "answers.parquet"),
        *("model", "report.html", "certificate.json"),
    }
    certificate = json.loads(stack.artifact(release, "certificate.json"))["certificate"]
    assert shown["quality"] == certificate["quality"]
    assert certificate["summary"] == shown["quality"]["summary"]
    model = ReleasedModel.from_bytes(stack.artifact(release, "model"))
    assert model.estimated_rows > 0
    spent = sum(each.price_units for each in stack.journal(release))
    account = stack.account(population)
    assert (account.spent_units, account.reserved_units) == (spent, 0)
    stream = stack.http.get(f"/v1/releases/{release}/events").text
    assert stream.count("event: state") == 3 and '"state": "succeeded"' in stream
    # Delivered again, it changes nothing.
    before = stack.reservation(release)
    run_release(stack.context, release)
    assert stack.reservation(release) == before


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_declared_number_of_rows_that_is_far_off_is_told_once_it_is_paid_for(
    stack: Stack, dataset: UUID, dry_run: bool
) -> None:
    """There are 200 rows, counted with a noise of 23 rows: 50,000 is far off for any noise."""
    release = stack.submit(dataset, dry_run=dry_run)
    before = stack.release(release)["warnings"]
    assert not any("expected_rows" in each["detail"] for each in before)
    run_release(stack.context, release)
    found = stack.release(release)["warnings"]
    assert found[: len(before)] == before
    added = [each["type"] for each in found[len(before) :]]
    assert added == ([] if dry_run else ["/warnings/expected-rows-far-off"])


def test_certificate(stack: Stack, population: UUID, dataset: UUID) -> None:
    started = datetime.now(UTC).date()
    release = stack.submit(dataset, outputs=CERTIFIED)
    run_release(stack.context, release)
    document = json.loads(stack.artifact(release, "certificate.json"))
    assert set(document) == {"certificate", "signature", "public_key", "algorithm"}
    certificate = document["certificate"]
    signed = json.dumps(
        certificate, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    ).encode()
    key = base64.b64decode(document["public_key"])
    assert key == stack.context.signing_key.public_key().public_bytes_raw()
    Ed25519PublicKey.from_public_bytes(key).verify(base64.b64decode(document["signature"]), signed)
    for name, told in certificate["artifacts"].items():
        content = stack.artifact(release, name)
        assert (hashlib.sha256(content).hexdigest(), len(content)) == (told["sha256"], told["size"])
    listed = {each["name"] for each in stack.release(release)["artifacts"]}
    assert set(certificate["artifacts"]) == listed - {"certificate.json"}
    assert certificate["release_id"] == str(release) and not certificate["dry_run"]
    assert certificate["population"]["id"] == str(population)
    chain = stack.http.get(f"/v1/populations/{population}/ledger?limit=100").json()["items"]
    digests = [entry["digest"] for entry in chain if entry["release_id"] == str(release)]
    reserved, *operations = certificate["ledger"]
    assert [each["digest"] for each in certificate["ledger"]] == digests[:-1]
    assert (reserved["kind"], reserved["digest"], digests[-1]) == ("reserve", None, None)
    assert [each["kind"] for each in operations] == ["operation"] * 10
    assert all(len(each["digest"]) == 64 for each in operations)
    # Neither numbers nor hashes of entries, which would reveal times and other releases.
    assert {*reserved} == {"kind", "operation", "rho_units", "digest"}
    assert not any(entry["hash"] in json.dumps(certificate) for entry in chain)
    issued = datetime.fromisoformat(certificate["issued_at"])
    assert issued.timetz() == time(tzinfo=UTC)
    assert started <= issued.date() <= datetime.now(UTC).date()
    spent = sum(e["rho_units"] for e in certificate["ledger"] if e["kind"] == "operation")
    reservation = stack.reservation(release)
    assert certificate["rho_units"] == spent == reservation.spent_units
    assert certificate["rho_units_reserved"] == reservation.amount_units == reserved["rho_units"]
    assert certificate["csv_escaping"]["prefix"] == "'"


def test_the_amount_of_an_exact_release_is_fixed_at_submission(stack: Stack, dataset: UUID) -> None:
    release = stack.submit(
        dataset,
        mechanism={"name": "relaxed_projection", "components": 2},
        budget={"epsilon": 0.5},
        outputs=CERTIFIED,
    )
    run_release(stack.context, release)
    certificate = json.loads(stack.artifact(release, "certificate.json"))["certificate"]
    assert certificate["accounting"] == "exact_gaussian"
    assert certificate["rho_units_reserved"] == stack.reservation(release).amount_units
    assert certificate["rho_units_reserved"] > 1.05 * units_of_epsilon(0.5, 1e-9)
    for stated in ("epsilon_reserved", "epsilon"):
        assert 0.4995 < certificate[stated]["1e-09"] <= 0.5
    assert "exact curve of this noise" in stack.artifact(release, "report.html").decode()


def test_certificates_verify_offline(stack: Stack, dataset: UUID, tmp_path: Path) -> None:
    release = stack.submit(dataset)
    run_release(stack.context, release)
    names = [each["name"] for each in stack.release(release)["artifacts"]]
    for name in names:
        (tmp_path / name).write_bytes(stack.artifact(release, name))
    everything = [tmp_path / name for name in names]
    report = verify(tmp_path / "certificate.json", everything)
    assert report.ok and report.unchecked == ()
    with (tmp_path / "synthetic.csv").open("ab") as file:
        file.write(b"\n")
    assert not verify(tmp_path / "certificate.json", everything).ok


def test_what_was_spent_is_anchored_first(
    stack: Stack, population: UUID, dataset: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = stack.submit(dataset)
    finish = progress.finish
    anchored: list[int] = []

    def look(*arguments: Any, **named: Any) -> bool:
        sealed = stack.context.anchor_store.read()
        assert sealed is not None
        heads = unseal(sealed.document, stack.context.signing_key.public_key())
        anchored.extend(head.seq for head in heads if head.population_id == population)
        return finish(*arguments, **named)

    monkeypatch.setattr(progress, "finish", look)
    run_release(stack.context, release)
    # The account, the reservation and seven operations; the closing is being written.
    assert anchored == [9]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE release SET spec = jsonb_set(spec, '{mechanism,rounds}', '2') WHERE id = :id",
        "UPDATE release SET units = units - 1 WHERE id = :id",
        "UPDATE dataset SET content_hash = sha256('other')"
        " WHERE id = (SELECT dataset_id FROM release WHERE id = :id)",
        "UPDATE population SET max_rows_per_person = 1, unit = 'person'"
        " WHERE id = (SELECT population_id FROM release WHERE id = :id)",
    ],
)
def test_only_what_was_reserved_is_run(stack: Stack, dataset: UUID, change: str) -> None:
    release = stack.submit(dataset)
    stack.scalar(change, id=release)
    logged = len(stack.log.getvalue())
    run_release(stack.context, release)
    assert stack.release(release)["error"]["type"] == "/problems/internal"
    assert stack.journal(release) == []
    assert "ReservedForOther" in stack.log.getvalue()[logged:]


def test_damaged_rows_are_not_counted(stack: Stack, dataset: UUID) -> None:
    for path in stack.objects(f"datasets/{dataset}/tables/1/rows"):
        path.write_bytes(path.read_bytes()[:-1])
    release = stack.submit(dataset)
    run_release(stack.context, release)
    assert stack.release(release)["state"] == "failed"
    assert stack.journal(release) == []


def test_a_database_that_is_behind_is_not_used(
    stack: Stack, dataset: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Context) -> None:
        raise DatabaseBehind

    release = stack.submit(dataset)
    monkeypatch.setattr(Context, "check_anchor", refuse)
    run_release(stack.context, release)
    monkeypatch.undo()
    assert stack.release(release)["state"] == "queued"
    assert stack.reservation(release).lease_epoch == 0


def test_dry_run(stack: Stack, population: UUID) -> None:
    """It needs no rows, and no budget."""
    dataset = stack.dataset(population)
    release = stack.submit(dataset, dry_run=True, outputs=CERTIFIED)
    before = stack.account(population)
    run_release(stack.context, release)
    shown = stack.release(release)
    assert (shown["state"], shown["rho_spent"]) == ("succeeded", 0)
    certificate = json.loads(stack.artifact(release, "certificate.json"))["certificate"]
    assert certificate["dry_run"] and certificate["ledger"] == []
    assert certificate["dataset"]["content_hash"] is None
    assert stack.account(population) == before
    run_release(stack.context, release)
    assert stack.release(release) == shown


def test_public_row_counts_and_answers_only(stack: Stack) -> None:
    population = stack.population(relation="replace_one")
    dataset = stack.uploaded(population, csv_rows(50))
    ingest_dataset(stack.context, dataset)
    release = stack.submit(dataset, mechanism={"name": "gaussian"}, outputs={})
    run_release(stack.context, release)
    shown = stack.release(release)
    assert shown["state"] == "succeeded"
    assert {each["name"] for each in shown["artifacts"]} == {
        *("answers.csv", "certificate.json", "model", "report.html")
    }
    first = stack.journal(release)[0]
    assert (first.kind, first.price_units, first.scale) == ("rows", 0, 0)
    assert int.from_bytes(first.values, "little") == 50


@pytest.mark.parametrize("dry_run", [False, True])
def test_numbers_without_bins_are_released_in_their_declared_form(
    stack: Stack, dry_run: bool
) -> None:
    columns = [
        {"name": "sex", "type": "categorical", "values": ["F", "M"]},
        {"name": "age", "type": "integer", "lower": 18, "upper": 90, "nullable": False},
        {"name": "pay", "type": "real", "lower": 0, "upper": 1000, "decimals": 2},
    ]
    dataset = stack.dataset(stack.population(), {"columns": columns})
    rows = [f"{'FM'[i % 2]},{18 + i % 60},{'' if i % 4 == 0 else i}" for i in range(200)]
    stack.upload(dataset, "\n".join(["sex,age,pay", *rows]).encode())
    ingest_dataset(stack.context, dataset)
    release = stack.submit(
        dataset,
        workload=[
            {"type": "binary_tree", "k": 2, "levels": 3},
            {"type": "prefixes", "count": 30, "seed": 1},
        ],
        mechanism={"name": "private_gsd", "rows": 100, "rounds": 2, "generations": 300},
        outputs={"rows": 90, "certify": {"share": 0.1}},
        dry_run=dry_run,
    )
    run_release(stack.context, release)
    assert stack.release(release)["state"] == "succeeded"
    header, *lines = stack.artifact(release, "synthetic.csv").decode().splitlines()
    assert header == "sex,age,pay" and len(lines) == 90
    for _, age, pay in (line.split(",") for line in lines):
        assert 18 <= int(age) <= 90
        assert pay == "" or (0 <= float(pay) <= 1000 and len(pay.partition(".")[2]) <= 2)
