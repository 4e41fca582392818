"""Schemas are saved under a name and a version, never change, and declare datasets."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .support import SCHEMA, TWO_LEVEL, Api, pages, problem

OTHER = {"columns": SCHEMA["columns"][:1]}
PERSON = {"columns": [*SCHEMA["columns"], {"name": "pid", "type": "identifier"}]}


def saved(api: Api, name: str, schema: Any = SCHEMA, **headers: str) -> dict[str, Any]:
    body = {"name": name, "schema": schema}
    answer = api.role("curator").post("/v1/schemas", json=body, headers=headers)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    assert answer.headers["location"] == f"/v1/schemas/{found['id']}"
    return found


def test_the_same_name_again_is_the_next_version(api: Api) -> None:
    name = uuid.uuid4().hex
    first, second = saved(api, name), saved(api, name, OTHER)
    assert (first["version"], second["version"]) == (1, 2)
    assert set(first) == {"id", "name", "version", "created_at", "schema"}
    curator = api.role("curator")
    for made, schema in ((first, SCHEMA), (second, OTHER)):
        assert curator.get(f"/v1/schemas/{made['id']}").json() == made
        assert made["schema"] == schema
    listed = curator.get("/v1/schemas", params={"name": name}).json()["items"]
    assert [each["version"] for each in listed] == [2, 1] and "schema" not in listed[0]
    everything = [item["id"] for page in pages(curator, "/v1/schemas", 3) for item in page]
    assert {first["id"], second["id"]} <= set(everything)
    problem(curator.get(f"/v1/schemas/{uuid.uuid4()}"), 404, "not-found")


def test_a_repeated_request_saves_nothing_twice(api: Api) -> None:
    name, key = uuid.uuid4().hex, {"Idempotency-Key": uuid.uuid4().hex}
    assert saved(api, name, **key) == saved(api, name, **key)
    body = {"name": name, "schema": OTHER}
    answer = api.role("curator").post("/v1/schemas", json=body, headers=key)
    problem(answer, 409, "idempotency-key-reused")
    assert saved(api, name)["version"] == 2


def test_versions_saved_at_the_same_moment_differ(api: Api) -> None:
    name = uuid.uuid4().hex
    with ThreadPoolExecutor(6) as threads:
        made = list(threads.map(lambda _: saved(api, name), range(6)))
    assert sorted(each["version"] for each in made) == [1, 2, 3, 4, 5, 6]


def test_what_no_dataset_could_use_is_refused(api: Api) -> None:
    curator = api.role("curator")
    good = {"name": "x", "schema": SCHEMA}
    refused: tuple[dict[str, Any], ...] = (
        {"schema": {"columns": []}},
        {"schema": None},
        {"name": ""},
        {"more": 1},
    )
    for changes in refused:
        problem(curator.post("/v1/schemas", json=good | changes), 422, "invalid")
    nul = {"columns": [{"name": "a", "type": "categorical", "values": ["\0"]}]}
    problem(curator.post("/v1/schemas", json=good | {"schema": nul}), 422, "cannot-work")


def test_a_dataset_is_declared_with_a_saved_schema(api: Api) -> None:
    curator = api.role("curator")
    made = saved(api, uuid.uuid4().hex)
    body = {"name": "census", "visibility": "private", "population_id": api.population()}
    answer = curator.post("/v1/datasets", json=body | {"schema_id": made["id"]})
    assert answer.status_code == 201, answer.text
    found = answer.json()
    assert (found["schema"], found["schema_id"]) == (SCHEMA, made["id"])
    alone = curator.post("/v1/datasets", json=body | {"schema": SCHEMA}).json()
    assert alone["schema_id"] is None
    for declared in ({}, {"schema": SCHEMA, "schema_id": made["id"]}):
        refused = problem(curator.post("/v1/datasets", json=body | declared), 422, "invalid")
        assert 'exactly one of "schema" and "schema_id"' in refused["detail"]
    unknown = body | {"schema_id": str(uuid.uuid4())}
    problem(curator.post("/v1/datasets", json=unknown), 404, "not-found")


def test_a_saved_schema_must_fit_the_population(api: Api) -> None:
    people = api.population(unit="person", max_rows_per_person=3)
    body = {"name": "x", "visibility": "private", "population_id": people}
    for schema, status in ((SCHEMA, 422), (TWO_LEVEL, 422), (PERSON, 201)):
        made = saved(api, uuid.uuid4().hex, schema)
        answer = api.role("curator").post("/v1/datasets", json=body | {"schema_id": made["id"]})
        assert answer.status_code == status, answer.text
