"""Releases that start from public data: from both uploads to the download, and what is refused."""

import csv
import io
import json
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import numpy as np
import pytest

from service.data.ledger.anchor_store import FileAnchorStore
from synth.models.released import ReleasedModel
from tests.worker.support import SCHEMA, Stack
from worker.ingest import ingest_dataset
from worker.pretrained import PRETRAINED
from worker.releases import run_release

pytestmark = pytest.mark.random

# Another order and other declarations than SCHEMA, a column of its own, and values it does not know.
PUBLIC_SCHEMA: dict[str, Any] = {
    "columns": [
        {"name": "town", "type": "categorical", "values": ["b", "a", "far away"]},
        {"name": "height", "type": "real", "lower": 0, "upper": 3},
        {"name": "age", "type": "integer", "lower": 0, "upper": 130},
        {"name": "sex", "type": "categorical", "values": ["M", "F"]},
    ]
}

SMALL_GEM_PUB: dict[str, Any] = {
    "name": "gem_pub",
    "components": 20,
    "latent": 4,
    "hidden": [8],
    "steps": 5,
    "pretraining_steps": 5,
}


def public_csv(rows: int = 400) -> bytes:
    rng = np.random.default_rng(5)
    towns = ["a", "b", "far away"]
    lines = [
        f"{towns[rng.integers(3)]},1.7,{rng.integers(120)},{'FM'[rng.integers(2)]}"
        for _ in range(rows)
    ]
    return "\n".join(["town,height,age,sex", *lines, ""]).encode()


def ready_public(
    stack: Stack, schema: dict[str, Any] = PUBLIC_SCHEMA, content: bytes | None = None
) -> UUID:
    dataset = stack.dataset(None, schema)
    stack.upload(dataset, content or public_csv())
    ingest_dataset(stack.context, dataset)
    return dataset


@pytest.fixture
def public(stack: Stack) -> UUID:
    return ready_public(stack)


def submit(stack: Stack, dataset: UUID, public: UUID, **changes: Any) -> UUID:
    body = {"mechanism": {"name": "pmw_pub", "rounds": 3}, "public_dataset_id": str(public)}
    return stack.submit(dataset, **body | changes)


def ask(
    stack: Stack, path: str, dataset: UUID, public: UUID | None, **changes: Any
) -> httpx.Response:
    body = {
        "dataset_id": str(dataset),
        "public_dataset_id": None if public is None else str(public),
        "workload": [{"type": "marginals", "k": 2}],
        "mechanism": {"name": "pmw_pub"},
        "budget": {"rho": 0.1},
    }
    return stack.http.post(path, json=body | changes, headers={"Idempotency-Key": uuid.uuid4().hex})


@pytest.mark.parametrize(
    ("mechanism", "opening", "kind"),
    [
        pytest.param({"name": "pmw_pub"}, [], "support", id="pmw_pub"),
        pytest.param({"name": "pep_pub"}, [], "support", id="pep_pub"),
        pytest.param(SMALL_GEM_PUB, ["measure"] * 3, "product_mixture", id="gem_pub"),
    ],
)
def test_from_both_uploads_to_the_download(
    stack: Stack,
    population: UUID,
    dataset: UUID,
    public: UUID,
    mechanism: dict[str, Any],
    opening: list[str],
    kind: str,
) -> None:
    screened = mechanism | {"rounds": 3, "screen": {"max_error": 0.9}}
    release = submit(stack, dataset, public, mechanism=screened, budget={"rho": 5.0})
    run_release(stack.context, release)
    shown = stack.release(release)
    assert shown["state"] == "succeeded", shown["error"]
    kinds = [each.kind for each in stack.journal(release)]
    assert kinds == ["rows", "best_mixture", *opening, *["select", "measure"] * 3]
    rows = list(csv.DictReader(io.StringIO(stack.artifact(release, "synthetic.csv").decode())))
    assert len(rows) == 60 and list(rows[0]) == ["sex", "age", "town"]
    assert {row["town"] for row in rows} <= {"a", "b", "other", ""}  # far away is nobody's label
    assert ReleasedModel.from_bytes(stack.artifact(release, "model")).model.kind == kind
    certificate = json.loads(stack.artifact(release, "certificate.json"))["certificate"]
    assert certificate["public_dataset"]["id"] == str(public)
    assert certificate["public_dataset"]["provenance"] == "a test"
    assert certificate["public_data_screen"]["standard_error"] > 0
    account = stack.account(population)
    assert (account.spent_units, account.reserved_units) == (certificate["rho_units"], 0)


def test_public_data_that_fail_the_screen_return_the_rest(
    stack: Stack, population: UUID, dataset: UUID
) -> None:
    one_row = ready_public(stack, content=b"town,height,age,sex\na,1.7,30,F\n")
    mechanism = {"name": "pmw_pub", "screen": {"share": 0.1, "max_error": 0.05}}
    release = submit(stack, dataset, one_row, mechanism=mechanism, budget={"rho": 5.0})
    run_release(stack.context, release)
    shown = stack.release(release)
    assert shown["state"] == "failed" and shown["artifacts"] == []
    assert shown["error"]["type"] == "/problems/public-data-too-far"
    assert "standard error" in shown["error"]["detail"]
    spent = [each.price_units for each in stack.journal(release)]
    assert [each.kind for each in stack.journal(release)] == ["rows", "best_mixture"]
    account = stack.account(population)
    assert (account.spent_units, account.reserved_units) == (sum(spent), 0)
    assert sum(spent) <= 0.11 * 5 * 10**12


def test_the_value_of_the_screen_is_anchored_before_it_is_seen(
    stack: Stack, dataset: UUID, tmp_path: Path
) -> None:
    """Where the anchor cannot be written, the job is left to be resumed and shows no value."""
    one_row = ready_public(stack, content=b"town,height,age,sex\na,1.7,30,F\n")
    mechanism = {"name": "pmw_pub", "screen": {"share": 0.1, "max_error": 0.05}}
    release = submit(stack, dataset, one_row, mechanism=mechanism, budget={"rho": 5.0})
    anchored = stack.context.anchor_store.read()
    assert anchored is not None
    (tmp_path / "anchor.json").write_bytes(anchored.document)
    (tmp_path / ".anchor.json.lock").mkdir()  # so the anchor can be read, and not be written
    store = FileAnchorStore(tmp_path / "anchor.json")
    run_release(replace(stack.context, anchor_store=store), release)
    shown = stack.release(release)
    assert [each.kind for each in stack.journal(release)] == ["rows", "best_mixture"]
    assert (shown["state"], shown["error"]) == ("running", None)
    stack.expire_lease(release)
    run_release(stack.context, release)
    assert stack.release(release)["error"]["type"] == "/problems/public-data-too-far"


def test_missing_columns_are_refused_before_anything_is_reserved(
    stack: Stack, population: UUID, dataset: UUID
) -> None:
    columns = [each for each in PUBLIC_SCHEMA["columns"] if each["name"] != "sex"]
    public = stack.dataset(None, {"columns": columns})
    for path in ("/v1/releases/preview", "/v1/releases"):
        refused = ask(stack, path, dataset, public)
        assert refused.status_code == 422
        assert "lack sex" in refused.json()["detail"] and "gem_pub" in refused.json()["detail"]
    assert stack.account(population).reserved_units == 0


def test_gem_pub_takes_public_data_that_lack_columns_and_learns_them_once(
    stack: Stack, dataset: UUID
) -> None:
    columns = [each for each in PUBLIC_SCHEMA["columns"] if each["name"] in {"town", "age"}]
    content = b"\n".join([b"town,age", *(b"a,%d" % (i % 120) for i in range(300)), b""])
    public = ready_public(stack, {"columns": columns}, content)
    learnt: list[bytes] = []
    for _ in range(2):
        before = set(stack.objects(PRETRAINED))
        release = submit(stack, dataset, public, mechanism=SMALL_GEM_PUB | {"rounds": 1})
        run_release(stack.context, release)
        shown = stack.release(release)
        assert shown["state"] == "succeeded", shown["error"]
        learnt += [path.read_bytes() for path in set(stack.objects(PRETRAINED)) - before]
    assert len(learnt) == 1


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"name": "sex", "type": "integer", "lower": 0, "upper": 1}, "categorical in the private"),
        ({"name": "age", "type": "identifier"}, "identifier in the public"),
    ],
)
def test_a_column_of_another_kind_is_refused_at_once(
    stack: Stack, dataset: UUID, column: dict[str, Any], message: str
) -> None:
    others = [each for each in PUBLIC_SCHEMA["columns"] if each["name"] != column["name"]]
    public = stack.dataset(None, {"columns": [*others, column]})
    for path in ("/v1/releases/preview", "/v1/releases"):
        refused = ask(stack, path, dataset, public)
        assert refused.status_code == 422 and message.split()[0] in refused.json()["detail"]
        assert f"'{column['name']}'" in refused.json()["detail"]


def test_public_data_must_be_named_and_ready(stack: Stack, dataset: UUID) -> None:
    assert "needs a public dataset" in ask(stack, "/v1/releases", dataset, None).json()["detail"]
    waiting = stack.dataset(None, PUBLIC_SCHEMA)
    warned = ask(stack, "/v1/releases/preview", dataset, waiting, dry_run=True).json()["warnings"]
    assert any("public dataset is awaiting_content" in warning["detail"] for warning in warned)
    for dry_run in (False, True):
        assert ask(stack, "/v1/releases", dataset, waiting, dry_run=dry_run).status_code == 409


def test_the_preview_counts_the_screen(stack: Stack, dataset: UUID, public: UUID) -> None:
    mechanism = {"name": "pmw_pub", "rounds": 2}
    plain = ask(stack, "/v1/releases/preview", dataset, public, mechanism=mechanism).json()
    screened = ask(
        stack,
        "/v1/releases/preview",
        dataset,
        public,
        mechanism=mechanism | {"screen": {"share": 0.5}},
    ).json()
    assert screened["operations"] == plain["operations"] + 1 == 1 + 2 * 2 + 1
    # Half of the budget is gone, so rho of a measurement is (0.99 - 0.5) / 0.99 of what it was.
    ratio = screened["items"][0]["sigma"] / plain["items"][0]["sigma"]
    assert ratio == pytest.approx((0.99 / 0.49) ** 0.5, rel=1e-6)


def test_a_dry_run_uses_the_public_rows(stack: Stack, public: UUID) -> None:
    population = stack.population()
    release = submit(stack, stack.dataset(population, SCHEMA), public, dry_run=True)
    run_release(stack.context, release)
    assert stack.release(release)["state"] == "succeeded"
    drawn = ReleasedModel.from_bytes(stack.artifact(release, "model")).model.to_arrays()
    assert drawn["codes"].shape[1] <= 400
    assert stack.account(population).spent_units == 0


def test_deleting_the_public_dataset_gives_its_releases_up(
    stack: Stack, population: UUID, dataset: UUID, public: UUID
) -> None:
    release = submit(stack, dataset, public)
    assert stack.http.delete(f"/v1/datasets/{public}").status_code == 204
    assert stack.release(release)["state"] == "cancelled"
    run_release(stack.context, release)
    assert stack.account(population).reserved_units == 0


def test_other_public_rows_than_were_reserved_for_are_refused(
    stack: Stack, dataset: UUID, public: UUID
) -> None:
    release = submit(stack, dataset, public)
    other = ready_public(stack, content=public_csv(10))
    stack.scalar(
        "UPDATE release SET public_dataset_id = :other WHERE id = :id", other=other, id=release
    )
    run_release(stack.context, release)
    shown = stack.release(release)
    assert shown["state"] == "failed" and shown["rho_spent"] == 0
    assert shown["error"]["type"] == "/problems/internal"
