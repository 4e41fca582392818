"""Datasets: declared, uploaded in constant memory, encrypted, deletable, never shown."""

import uuid
from typing import Any

import pytest

from service.data import datasets, ingest
from service.data.crypto import Unreadable, decrypt_pieces, upload_purpose
from service.datasets.service import HIDDEN_REASON

from .support import LEASE_SECONDS, SCHEMA, Api, pages, problem, stored_upload

PERSON = {"columns": [*SCHEMA["columns"], {"name": "pid", "type": "identifier"}]}

FINE = {
    "name": "x",
    "type": "real",
    "lower": 0,
    "upper": 1,
    "bins": {"count": 1_000_000},
    "decimals": 15,
}


def test_declare_and_show(api: Api) -> None:
    population = api.population()
    body = {
        "name": "census",
        "visibility": "private",
        "population_id": population,
        "schema": SCHEMA,
    }
    answer = api.role("curator").post("/v1/datasets", json=body)
    assert answer.status_code == 201
    found = answer.json()
    assert found["state"] == "awaiting_content" and found["missing_tables"] == ["rows"]
    assert found["schema"] == SCHEMA
    assert api.role("curator").get(answer.headers["location"]).json() == found
    assert set(found) == {
        "id", "name", "visibility", "population_id", "provenance", "disjoint_from_population",
        "state", "reason", "created_at", "schema", "schema_id", "missing_tables",
    }  # fmt: skip


def test_a_public_dataset_needs_provenance_and_the_statement(api: Api) -> None:
    body: dict[str, Any] = {"name": "old census", "visibility": "public", "schema": SCHEMA}
    curator = api.role("curator")
    problem(curator.post("/v1/datasets", json=body), 422, "invalid")
    body |= {"provenance": "published in 1994"}
    problem(curator.post("/v1/datasets", json=body), 422, "invalid")
    denied = body | {"disjoint_from_population": False}
    problem(curator.post("/v1/datasets", json=denied), 422, "invalid")
    body |= {"disjoint_from_population": True}
    assert curator.post("/v1/datasets", json=body).status_code == 201
    problem(
        curator.post("/v1/datasets", json=body | {"population_id": str(uuid.uuid4())}),
        422,
        "invalid",
    )


def test_refused_declarations(api: Api) -> None:
    population = api.population()
    curator = api.role("curator")
    good = {"name": "x", "visibility": "private", "population_id": population, "schema": SCHEMA}
    refused: tuple[dict[str, Any], ...] = (
        {"schema": {"columns": []}},
        {"schema": {"columns": [{"name": "a", "type": "colour"}]}},
        {"schema": SCHEMA | {"more": 1}},
        {"schema": 3},
        {"schema": {"columns": [FINE]}},
        {
            "schema": {
                "columns": [{**FINE, "name": f"x{i}", "bins": {"count": 900}} for i in range(600)]
            }
        },
        {"visibility": "secret"},
        {"population_id": "x"},
        {"name": None},
    )
    for changes in refused:
        problem(curator.post("/v1/datasets", json=good | changes), 422, "invalid")
    unknown = good | {"population_id": str(uuid.uuid4())}
    problem(curator.post("/v1/datasets", json=unknown), 404, "not-found")
    nul = {"columns": [{"name": "a", "type": "categorical", "values": ["\0"]}]}
    problem(curator.post("/v1/datasets", json=good | {"schema": nul}), 422, "cannot-work")


def test_people_need_an_identifier(api: Api) -> None:
    population = api.population(unit="person", max_rows_per_person=3)
    body = {"name": "x", "visibility": "private", "population_id": population, "schema": SCHEMA}
    found = problem(api.all.post("/v1/datasets", json=body), 422, "cannot-work")
    assert "identifier" in found["detail"]
    assert api.all.post("/v1/datasets", json=body | {"schema": PERSON}).status_code == 201


def test_delete_destroys_key_and_objects_and_keeps_spending(api: Api) -> None:
    population = api.population()
    dataset = api.ready_dataset(population)
    release = api.release(dataset)
    row, upload = stored_upload(api, dataset)
    stored = b"".join(api.context.storage.read(upload.object_key))
    assert api.all.delete(f"/v1/datasets/{dataset}").status_code == 204
    assert api.all.delete(f"/v1/datasets/{dataset}").status_code == 204
    assert api.all.get(f"/v1/datasets/{dataset}").json()["state"] == "deleted"
    with api.session() as session:
        assert datasets.get(session, row.id).wrapped_key is None
    assert api.context.storage.keys(datasets.object_prefix(row.id)) == []
    with pytest.raises(Unreadable):
        list(decrypt_pieces(bytes(32), [stored], purpose=upload_purpose("rows")))
    problem(api.upload(dataset), 409, "conflict")
    problem(api.create({"dataset_id": dataset} | _RELEASE), 409, "dataset-not-ready")
    assert api.all.get(f"/v1/releases/{release}").json()["state"] == "cancelled"
    assert api.budget(population)["rho_reserved"] == 0


_RELEASE = {
    "workload": [{"type": "marginals", "k": 1}],
    "mechanism": {"name": "gaussian"},
    "budget": {"rho": 0.1},
}


def test_leases_keep_two_workers_apart(api: Api) -> None:
    dataset = api.dataset(api.population())
    dataset_id = uuid.UUID(dataset)
    with api.session() as session, session.begin():
        assert ingest.claim(session, dataset_id, lease_seconds=LEASE_SECONDS) is None
    api.upload(dataset)
    with api.session() as session, session.begin():
        assert dataset_id in ingest.waiting(session, limit=1000)
        first = ingest.claim(session, dataset_id, lease_seconds=1e-6)
    with api.session() as session, session.begin():
        second = ingest.claim(session, dataset_id, lease_seconds=LEASE_SECONDS)
        assert (first, second) == (1, 2)
        assert ingest.claim(session, dataset_id, lease_seconds=LEASE_SECONDS) is None
        assert dataset_id not in ingest.waiting(session, limit=1000)
    with api.session() as session, session.begin():
        assert first is not None and second is not None
        assert not ingest.renew(session, dataset_id, epoch=first, lease_seconds=1)
        assert not ingest.settle(session, dataset_id, epoch=first, state="ready")
        assert ingest.renew(session, dataset_id, epoch=second, lease_seconds=LEASE_SECONDS)
        reason = "the header lacks a declared column"
        assert ingest.settle(session, dataset_id, epoch=second, state="rejected", reason=reason)
    shown = api.all.get(f"/v1/datasets/{dataset}").json()
    assert (shown["state"], shown["reason"]) == ("rejected", reason)


def test_deleting_takes_the_lease_from_a_worker(api: Api) -> None:
    dataset = api.dataset(api.population())
    api.upload(dataset)
    with api.session() as session, session.begin():
        epoch = ingest.claim(session, uuid.UUID(dataset), lease_seconds=LEASE_SECONDS)
    assert epoch is not None
    api.all.delete(f"/v1/datasets/{dataset}")
    with api.session() as session, session.begin():
        assert not ingest.settle(session, uuid.UUID(dataset), epoch=epoch, state="ready")


def test_pagination(api: Api) -> None:
    population = api.population()
    made = [api.dataset(population) for _ in range(3)]
    found = [item for page in pages(api.all, "/v1/datasets", 2) for item in page]
    assert [item["id"] for item in found[:3]] == made[::-1]
    assert "schema" not in found[0]


def test_a_canary_is_nowhere(api: Api) -> None:
    canary = "Wilhelmina-Canary-4711"
    population = api.population()
    dataset = api.dataset(population)
    answers = [
        api.upload(dataset, f"sex,age\n{canary},31\n".encode() * 1000),
        api.all.get(f"/v1/datasets/{dataset}"),
        api.all.get("/v1/datasets"),
        api.upload(dataset, canary.encode()),
        api.all.post("/v1/populations", json={"name": [canary], "delta": canary}),
        api.all.post("/v1/datasets", json={"name": "x", "visibility": canary}),
        api.all.post("/v1/datasets", content=f'{{"{canary}'.encode()),
        api.all.get(f"/v1/datasets/{canary}"),
        api.all.get("/v1/datasets", params={"cursor": canary, "limit": canary}),
        api.all.put(f"/v1/datasets/{dataset}/content?table={canary}", content=canary),
        api.all.get("/metrics"),
    ]
    for answer in answers:
        assert canary not in answer.text
    assert canary not in api.log.getvalue()
    assert len(api.objects()) > 0
    assert not any(canary.encode() in path.read_bytes() for path in api.objects())


def test_only_the_declaring_key_sees_why_a_dataset_was_rejected(api: Api) -> None:
    owner = api.client(api.new_key("curator"))
    body = {
        "name": "visits",
        "visibility": "private",
        "population_id": api.population(),
        "schema": SCHEMA,
    }
    with owner:
        path = owner.post("/v1/datasets", json=body).headers["location"]
        dataset_id = uuid.UUID(path.rpartition("/")[2])
        # Any curator may upload, but the reason is for the declaring key alone.
        assert api.upload(str(dataset_id)).json()["reason"] is None
        reason = "the identifier 'pid' is empty in some rows"
        with api.session() as session, session.begin():
            epoch = ingest.claim(session, dataset_id, lease_seconds=LEASE_SECONDS)
            assert epoch is not None
            assert ingest.settle(session, dataset_id, epoch=epoch, state="rejected", reason=reason)
        for client, expected in ((owner, reason), (api.all, HIDDEN_REASON)):
            listed = client.get("/v1/datasets", params={"limit": "200"}).json()["items"]
            (found,) = [each for each in listed if each["id"] == str(dataset_id)]
            assert found["state"] == "rejected" and found["reason"] == expected
            assert client.get(path).json()["reason"] == expected
        assert client.delete(path).status_code == 204
        assert (owner.get(path).json()["reason"], api.all.get(path).json()["reason"]) == (
            reason,
            HIDDEN_REASON,
        )
