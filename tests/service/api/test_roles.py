"""Who may call what: every endpoint against every role."""

import uuid
from typing import Any

import pytest

from service.data import progress
from service.keys.schemas import Scope

from .support import Api, problem, release_body

ROLES: tuple[Scope, ...] = ("admin", "curator", "analyst")
ANY = set(ROLES)
NOBODY = uuid.UUID(int=0)
QUESTION = {"workload": [{"type": "marginals", "k": 1}]}

# method, path, body, scopes that may call it
CALLS: list[tuple[str, str, Any, set[Scope]]] = [
    ("POST", "/v1/keys", {"name": "k", "scopes": ["analyst"]}, {"admin"}),
    ("GET", "/v1/keys", None, {"admin"}),
    ("DELETE", "/v1/keys/{key_id}", None, {"admin"}),
    ("POST", "/v1/populations", {"name": "p", "cap": {"rho": 1.0}, "delta": 1e-9}, {"admin"}),
    ("GET", "/v1/populations", None, ANY),
    ("GET", "/v1/populations/{population_id}", None, ANY),
    ("GET", "/v1/populations/{population_id}/ledger", None, {"curator"}),
    ("GET", "/v1/populations/{population_id}/ledger/verify", None, {"curator"}),
    ("POST", "/v1/schemas", {}, {"curator"}),
    ("GET", "/v1/schemas", None, {"curator"}),
    ("GET", "/v1/schemas/{schema_id}", None, {"curator"}),
    ("POST", "/v1/datasets", {}, {"curator"}),
    ("PUT", "/v1/datasets/{dataset_id}/content", None, {"curator"}),
    ("GET", "/v1/datasets", None, {"curator"}),
    ("GET", "/v1/datasets/{dataset_id}", None, {"curator"}),
    ("DELETE", "/v1/datasets/{dataset_id}", None, {"curator"}),
    ("GET", "/v1/mechanisms", None, ANY),
    ("POST", "/v1/releases/preview", release_body(str(NOBODY)), {"curator"}),
    ("POST", "/v1/releases", release_body(str(NOBODY)), {"curator"}),
    ("GET", "/v1/releases", None, {"curator", "analyst"}),
    ("GET", "/v1/releases/{release_id}", None, {"curator", "analyst"}),
    ("GET", "/v1/releases/{release_id}/events", None, {"curator", "analyst"}),
    ("POST", "/v1/releases/{release_id}/cancel", None, {"curator"}),
    ("POST", "/v1/releases/{release_id}/resume", None, {"admin"}),
    ("POST", "/v1/releases/{release_id}/publish", None, {"curator"}),
    ("GET", "/v1/releases/{release_id}/artifacts/{name}", None, {"curator", "analyst"}),
    ("POST", "/v1/releases/{release_id}/answers", {"workload": []}, {"analyst"}),
    ("POST", "/v1/releases/{release_id}/samples", {"rows": 1}, {"analyst"}),
    ("GET", "/metrics", None, {"admin"}),
]
OPEN = {("GET", "/healthz"), ("GET", "/readyz")}


def test_every_endpoint_is_in_the_matrix(api: Api) -> None:
    schema = api.app.openapi()
    served = {
        (method.upper(), path) for path, methods in schema["paths"].items() for method in methods
    }
    assert served == {(method, path) for method, path, _, _ in CALLS} | OPEN


def test_routes_have_descriptions(api: Api) -> None:
    for methods in api.app.openapi()["paths"].values():
        for operation in methods.values():
            assert operation["description"]


@pytest.mark.parametrize(("method", "path", "body", "allowed"), CALLS)
def test_matrix(api: Api, method: str, path: str, body: Any, allowed: set[Scope]) -> None:
    names = ("key_id", "population_id", "schema_id", "dataset_id", "release_id")
    url = path.format(**dict.fromkeys(names, NOBODY), name="synthetic.csv")
    with api.client(None) as nobody, api.client("scrim_wrong") as stranger:
        for client in (nobody, stranger):
            answer = client.request(method, url, json=body)
            problem(answer, 401, "unauthorized")
            assert answer.headers["www-authenticate"] == "Bearer"
    for role in ROLES:
        answer = api.role(role).request(
            method, url, json=body, headers={"Idempotency-Key": uuid.uuid4().hex}
        )
        if role in allowed:
            # The resource does not exist, or the body is invalid, but the caller is authorised.
            assert answer.status_code in {200, 201, 404, 415, 422}, answer.text
        else:
            found = problem(answer, 403, "scope-missing")
            assert all(scope in found["detail"] for scope in allowed)


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_needs_no_key(api: Api, path: str) -> None:
    with api.client(None) as nobody:
        assert nobody.get(path).status_code == 200


def test_analysts_see_published_releases_only(api: Api) -> None:
    dataset = api.ready_dataset(api.population())
    hidden, shown = api.release(dataset), api.release(dataset, publish=True)
    api.finish(hidden, {"synthetic.csv": b"a"})
    api.finish(shown, {"synthetic.csv": b"b"})
    analyst, curator = api.role("analyst"), api.role("curator")

    def listed(client: Any) -> set[str]:
        return {item["id"] for item in client.get("/v1/releases?limit=200").json()["items"]}

    assert listed(curator) >= {hidden, shown}
    assert listed(analyst) >= {shown}
    assert hidden not in listed(analyst)
    parts = ("", "/events", "/artifacts/synthetic.csv")
    for part in parts:
        problem(analyst.get(f"/v1/releases/{hidden}{part}"), 404, "not-found")
        assert analyst.get(f"/v1/releases/{shown}{part}").status_code == 200
    problem(analyst.post(f"/v1/releases/{hidden}/samples", json={"rows": 1}), 404, "not-found")
    assert curator.post(f"/v1/releases/{hidden}/publish").json()["published"] is True
    for part in parts:
        assert analyst.get(f"/v1/releases/{hidden}{part}").status_code == 200


@pytest.mark.parametrize("published_at", ["creation", "later"])
@pytest.mark.parametrize("state", ["queued", "running", "failed", "cancelled"])
def test_a_published_release_is_hidden_until_it_has_succeeded(
    api: Api, state: Any, published_at: str
) -> None:
    at_once = published_at == "creation"
    release = api.release(api.ready_dataset(api.population()), publish=at_once)
    path = f"/v1/releases/{release}"
    analyst, curator = api.role("analyst"), api.role("curator")
    if not at_once:
        assert curator.post(f"{path}/publish").json()["published"] is True
    with api.session() as session, session.begin():
        if state != "queued":
            assert progress.start(session, uuid.UUID(release)) is not None
        if state in {"failed", "cancelled"}:
            assert progress.finish(session, uuid.UUID(release), state)
    assert curator.get(path).json()["state"] == state
    for part in ("", "/events", "/artifacts/synthetic.csv"):
        problem(analyst.get(path + part), 404, "not-found")
    for part, body in (("samples", {"rows": 1}), ("answers", QUESTION)):
        problem(analyst.post(f"{path}/{part}", json=body), 404, "not-found")
    listed = analyst.get("/v1/releases?limit=200").json()["items"]
    assert release not in {item["id"] for item in listed}


def test_a_published_release_appears_when_it_succeeds(api: Api) -> None:
    release = api.release(api.ready_dataset(api.population()), publish=True)
    analyst = api.role("analyst")
    problem(analyst.get(f"/v1/releases/{release}"), 404, "not-found")
    api.finish(release, {"synthetic.csv": b"a"})
    assert analyst.get(f"/v1/releases/{release}").json()["state"] == "succeeded"
    listed = analyst.get("/v1/releases?limit=200").json()["items"]
    assert release in {item["id"] for item in listed}
