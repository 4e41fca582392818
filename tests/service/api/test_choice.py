"""`auto` over HTTP: the preview explains, the submission decides once, and nothing decides again."""

import uuid
from typing import Any

import pytest

from tests.service.api.support import SCHEMA, Api, problem, release_body


def preview(api: Api, dataset: str, **changes: Any) -> dict[str, Any]:
    body = release_body(dataset, **({"mechanism": {"name": "auto"}} | changes))
    answer = api.role("curator").post("/v1/releases/preview", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def public_dataset(api: Api) -> str:
    """Declared, and without rows."""
    body = {
        "name": "others",
        "visibility": "public",
        "provenance": "a test",
        "disjoint_from_population": True,
        "schema": SCHEMA,
    }
    return str(api.all.post("/v1/datasets", json=body).json()["id"])


def test_the_catalogue_begins_with_it(api: Api) -> None:
    first = api.role("analyst").get("/v1/mechanisms").json()["items"][0]
    assert first["name"] == "auto" and first["takes_public_data"]
    assert set(first["parameters"]["properties"]) == {"name", "goal", "measure", "seconds"}


def test_a_preview_explains_what_would_be_chosen(api: Api) -> None:
    dataset = api.ready_dataset(api.population())
    found = preview(api, dataset)
    assert found["mechanism"]["name"] == "generative_network"
    assert found["choice"]["asked"] == {"name": "auto", "goal": "mean_error", "measure": None}
    assert any("times its noise" in reason for reason in found["choice"]["reasons"])
    assert "gaussian" in {each["mechanism"] for each in found["choice"]["passed_over"]}
    named = preview(api, dataset, mechanism=found["mechanism"])
    assert named == {**found, "choice": None}


def test_a_submission_decides_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = api.ready_dataset(api.population())
    previewed = preview(api, dataset)
    body, key = release_body(dataset, mechanism={"name": "auto"}), uuid.uuid4().hex
    release = api.create(body, key=key).json()
    assert release["mechanism"] == previewed["mechanism"]
    assert release["choice"] == previewed["choice"]
    # Another machine would choose differently, but the release keeps its choice.
    monkeypatch.setitem(vars(api.context.settings), "worker_memory_bytes", 2**20)
    found = preview(api, dataset)
    assert found["mechanism"]["name"] != release["mechanism"]["name"]
    refused = {each["mechanism"]: each["reason"] for each in found["choice"]["passed_over"]}
    assert "MiB" in refused[release["mechanism"]["name"]]
    assert api.create(body, key=key).json() == release
    assert api.all.get(f"/v1/releases/{release['id']}").json() == release
    named = body | {"mechanism": release["mechanism"]}
    problem(api.create(named, key=key), 409, "idempotency-key-reused")


def test_public_data_is_kept_where_it_is_used(api: Api) -> None:
    dataset, public = api.ready_dataset(api.population()), public_dataset(api)
    found = preview(api, dataset, public_dataset_id=public)
    assert found["mechanism"]["name"] == "generative_network_pub"
    assert "The public dataset is awaiting_content" in found["warnings"][-1]["detail"]
    body = release_body(dataset, mechanism={"name": "auto"}, public_dataset_id=public)
    problem(api.create(body), 409, "dataset-not-ready")
    # No mechanism that uses public rows answers these, so the rows are not needed.
    halfspaces = {"type": "halfspaces", "count": 5, "seed": 0}
    release = api.create(body | {"workload": [halfspaces]}).json()
    assert (release["mechanism"]["name"], release["public_dataset_id"]) == ("private_gsd", None)
    assert "public data is not used" in release["choice"]["reasons"][-1]


def test_what_is_wrong_with_the_question_is_told_once(api: Api) -> None:
    dataset = api.ready_dataset(api.population())
    body = release_body(
        dataset,
        mechanism={"name": "auto"},
        workload=[{"type": "marginals", "attributes": [["height"]]}],
    )
    answer = api.role("curator").post("/v1/releases/preview", json=body)
    assert "height" in problem(answer, 422, "cannot-work")["detail"]
