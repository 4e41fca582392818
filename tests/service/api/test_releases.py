"""Releases: previewed, reserved, queued once, cancelled, published."""

import math
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis

from scrim.spec.budget import UNITS_PER_RHO, epsilon_of_units, units_of_epsilon
from service.data import progress
from service.data.ledger import repository as ledger
from service.data.ledger.records import LedgerOperation
from service.data.task_queue import JOBS
from service.embedded import ValkeyServer

from .support import LEASE_SECONDS, Api, pages, problem, release_body

CONCURRENT = 50


def claim(api: Api, release: str) -> int:
    with api.session() as session, session.begin():
        epoch = ledger.claim(
            session, uuid.UUID(release), holder="worker", lease_seconds=LEASE_SECONDS
        )
        assert progress.start(session, uuid.UUID(release)) is not None
    return epoch


def charge(api: Api, release: str, epoch: int, price: int) -> None:
    operation = LedgerOperation(0, "measure", {"marginal": ["sex"]}, 2.5, price, bytes(8))
    with api.session() as session, session.begin():
        ledger.commit_operation(session, uuid.UUID(release), epoch=epoch, operation=operation)


def test_mechanisms(api: Api) -> None:
    found = api.role("analyst").get("/v1/mechanisms").json()
    assert found["next"] is None
    names = {entry["name"] for entry in found["items"]}
    assert {"gaussian", "mwem", "pep"} <= names
    assert all(entry["paper"] and entry["parameters"] for entry in found["items"])


@pytest.mark.parametrize(
    ("protection", "sensitivity"),
    [
        ({}, 1.0),
        ({"relation": "replace_one"}, math.sqrt(2)),
    ],
)
def test_preview(api: Api, protection: dict[str, Any], sensitivity: float) -> None:
    population = api.population(**protection)
    dataset = api.dataset(population)
    body = release_body(
        dataset,
        mechanism={"name": "gaussian", "consistent": False, "objective": "max"},
        workload=[{"type": "marginals", "k": 1}, {"type": "marginals", "k": 2}],
    )
    found = api.role("curator").post("/v1/releases/preview", json=body).json()
    assert found["rho"] == 0.1
    # By the exact curve of Gaussian noise, less than the conversion of rho gives.
    assert found["accounting"] == "exact_gaussian"
    assert 0.9 < found["epsilon"] / epsilon_of_units(10**11, 1e-9) < 0.97
    assert found["rho_left_after"] == pytest.approx(0.9)
    assert found["queries"] == (2 + 10) + 20
    counted = protection == {}
    assert found["operations"] == 3 + counted
    rho_measure = (0.099 if counted else 0.1) / 3
    sigma = sensitivity / math.sqrt(2 * rho_measure)
    for position, item in enumerate(found["items"]):
        assert (item["item"], item["type"]) == (position, "marginals")
        assert item["sigma"] == pytest.approx(sigma)
        assert item["expected_error"] == pytest.approx(sigma * math.sqrt(2 / math.pi))
    assert [item["queries"] for item in found["items"]] == [12, 20]
    (warning,) = found["warnings"]
    assert warning["type"] == "/warnings/dataset-not-ready"
    assert "The dataset is awaiting_content, so this release would be refused" in warning["detail"]
    assert api.budget(population)["rho_reserved"] == 0


def test_an_epsilon_buys_more_rho_without_selections(api: Api) -> None:
    dataset = api.ready_dataset(api.population())
    before = units_of_epsilon(0.5, 1e-9) / UNITS_PER_RHO
    for mechanism, method in (("gaussian", "exact_gaussian"), ("mwem", "zcdp")):
        body = release_body(dataset, mechanism={"name": mechanism}, budget={"epsilon": 0.5})
        preview = api.role("curator").post("/v1/releases/preview", json=body).json()
        created = api.create(body).json()
        for found in (preview, created):
            assert found["accounting"] == method
            assert 0.499 < found["epsilon"] <= 0.5
            assert (found["rho"] == before) == (method == "zcdp")
        assert created["rho"] == preview["rho"] >= before


def test_a_release_may_take_the_epsilon_of_the_whole_cap(api: Api) -> None:
    population = api.population(cap={"epsilon": 1.0})
    body = release_body(
        api.ready_dataset(population), mechanism={"name": "gaussian"}, budget={"epsilon": 1.0}
    )
    created = api.create(body).json()
    assert created["rho"] == api.budget(population)["rho_cap"]
    assert api.budget(population)["rho_left"] == 0


def test_preview_of_an_adaptive_mechanism(api: Api) -> None:
    population = api.population(cap={"rho": 0.05})
    body = release_body(
        api.ready_dataset(population),
        workload=[{"type": "marginals", "attributes": [["sex"], ["age"], ["sex", "age"]]}],
        mechanism={"name": "mwem", "rounds": 2},
        outputs={"rows": 10, "certify": {"share": 0.1}},
    )
    found = api.role("curator").post("/v1/releases/preview", json=body).json()
    assert found["operations"] == 2 * (1 + 1) + 1 + 3
    assert found["rho_left_after"] == pytest.approx(-0.05)
    first, *others = found["warnings"]
    assert first["type"] == "/warnings/budget-exceeded"
    assert "would be refused" in first["detail"]
    assert any("At most 2 of 3 marginals" in warning["detail"] for warning in others)


def test_preview_of_annealed_rounds(api: Api) -> None:
    body = release_body(
        api.ready_dataset(api.population(relation="replace_one")),
        workload=[{"type": "marginals", "k": 2}],
        mechanism={"name": "gem_plus", "rounds": 8, "per_round": 1, "opening_share": 0.2},
    )
    found = api.role("curator").post("/v1/releases/preview", json=body).json()
    assert found["operations"] == 2 + 8 * (1 + 1)
    # A tenth of a round's budget selects.
    first = 0.9 * (0.8 * 0.1) / 8
    assert found["items"][0]["sigma"] == pytest.approx(math.sqrt(2 / (2 * first)), rel=1e-6)
    assert "at most 8 rounds" in found["warnings"][-1]["detail"]


def test_preview_of_a_game(api: Api) -> None:
    body = release_body(
        api.ready_dataset(api.population()),
        mechanism={"name": "dual_query", "rounds": 7, "samples": 3},
        outputs={"rows": 10, "certify": {"share": 0.1}},
    )
    found = api.role("curator").post("/v1/releases/preview", json=body).json()
    assert found["operations"] == 7 + 1 + 3
    assert [(item["sigma"], item["expected_error"]) for item in found["items"]] == [(None, None)]
    said = details(found)["/warnings/nothing-measured"]
    assert said.startswith("Nothing is measured: 3 queries are drawn in each of 7 rounds")
    assert said.endswith("the certificate will state it.")
    without = api.role("curator").post(
        "/v1/releases/preview", json={**body, "outputs": {"rows": 10}}
    )
    said = details(without.json())["/warnings/nothing-measured"]
    assert said.endswith("request outputs.certify to measure it.")


def details(preview: dict[str, Any]) -> dict[str, str]:
    """The warnings of a preview by their type."""
    return {warning["type"]: warning["detail"] for warning in preview["warnings"]}


@pytest.mark.parametrize(
    ("mechanism", "expected"),
    [
        # 14 singles and 3 doubles for each of 500 components and 12 codes; 44 bytes for each cell of 3
        # marginals.
        (
            {"name": "relaxed_projection", "components": 500},
            (14 * 4 + 3 * 8) * 500 * 12 + 44 * (12 + 20),
        ),
        # The fit has 20 cells. 100 rows of two cells are drawn, and 20 cells are answered.
        ({"name": "mwem"}, 100 * (2 * 16 + 40) + 20 * 320),
        ({"name": "gaussian"}, None),
    ],
)
def test_a_preview_tells_the_memory_that_is_needed(
    api: Api, mechanism: dict[str, Any], expected: int | None
) -> None:
    body = release_body(
        api.dataset(api.population()),
        mechanism=mechanism,
        workload=[{"type": "marginals", "k": 2}],
        outputs={} if expected is None else {"rows": 100},
    )
    found = api.role("curator").post("/v1/releases/preview", json=body).json()
    assert found["memory_bytes"] == expected
    knows_its_time = mechanism["name"] == "relaxed_projection"
    assert (found["processor_seconds"] is not None) == knows_its_time


def test_what_does_not_fit_a_worker_is_refused(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(vars(api.context.settings), "worker_memory_bytes", 2**30)
    population = api.population()
    body = release_body(api.ready_dataset(population), outputs={"rows": 10**8})
    before = api.all.get(f"/v1/populations/{population}").json()
    previewed = api.role("curator").post("/v1/releases/preview", json=body)
    for answer in (previewed, api.create(body)):
        found = problem(answer, 422, "cannot-work")
        assert "6,866 MiB, but workers have 1,024 MiB" in found["detail"]
        assert "outputs.rows" in found["detail"]
    assert api.all.get(f"/v1/populations/{population}").json() == before


@pytest.mark.parametrize(
    ("changes", "status", "kind"),
    [
        ({"workload": [{"type": "marginals", "k": 3}]}, 422, "cannot-work"),
        ({"workload": [{"type": "marginals", "attributes": [["height"]]}]}, 422, "cannot-work"),
        ({"workload": []}, 422, "invalid"),
        ({"mechanism": {"name": "magic"}}, 422, "invalid"),
        ({"mechanism": {"name": "gaussian"}, "outputs": {"rows": 5}}, 422, "invalid"),
        ({"budget": {"rho": 1e-12}}, 422, "cannot-work"),
        ({"public_dataset_id": str(uuid.uuid4())}, 422, "invalid"),
        ({"dataset_id": str(uuid.uuid4())}, 404, "not-found"),
        ({"dataset_id": "nothing"}, 404, "not-found"),
        ({"surprise": True}, 422, "invalid"),
        ({"dry_run": 1}, 422, "invalid"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_spent(
    api: Api, changes: dict[str, Any], status: int, kind: str
) -> None:
    population = api.population()
    body = release_body(api.ready_dataset(population)) | changes
    problem(api.all.post("/v1/releases/preview", json=body), status, kind)
    problem(api.create(body), status, kind)
    assert api.budget(population)["rho_left"] == 1.0


def test_create_reserves_and_sends_a_message(api: Api, valkey_server: ValkeyServer) -> None:
    population = api.population()
    dataset = api.ready_dataset(population)
    body = release_body(dataset, budget={"rho": 0.25})
    answer = api.create(body)
    assert answer.status_code == 202
    found = answer.json()
    assert answer.headers["location"] == f"/v1/releases/{found['id']}"
    assert found["state"] == "queued" and found["progress"] == {"done": 0, "total": 0}
    assert (found["rho"], found["rho_spent"], found["error"]) == (0.25, 0.0, None)
    assert found["artifacts"] == [] and found["mechanism"]["name"] == "mwem"
    assert api.all.get(answer.headers["location"]).json() == found
    budget = api.budget(population)
    assert (budget["rho_reserved"], budget["rho_left"]) == (0.25, 0.75)
    with redis.Redis.from_url(valkey_server.url) as broker:
        messages = broker.lrange(JOBS, 0, -1)
    mine = [message for message in messages if found["id"].encode() in message]
    assert len(mine) == 1 and b"release.run" in mine[0] and dataset.encode() not in mine[0]


def test_create_needs_a_ready_dataset_and_a_key(api: Api) -> None:
    population = api.population()
    body = release_body(api.dataset(population))
    problem(api.create(body), 409, "dataset-not-ready")
    found = problem(api.all.post("/v1/releases", json=body), 422, "invalid")
    assert found["errors"][0]["loc"] == ["header", "Idempotency-Key"]


def test_public_data_is_not_released(api: Api) -> None:
    declared = api.all.get(f"/v1/datasets/{api.dataset(api.population())}").json()
    body = {
        "name": "public",
        "visibility": "public",
        "provenance": "a paper",
        "disjoint_from_population": True,
        "schema": declared["schema"],
    }
    public = api.all.post("/v1/datasets", json=body).json()["id"]
    problem(api.create(release_body(public)), 422, "cannot-work")


def test_repeating_a_request_gives_the_same_release(api: Api) -> None:
    population = api.population()
    dataset = api.ready_dataset(population)
    key, body = uuid.uuid4().hex, release_body(dataset)
    first, second = (api.create(body, key=key) for _ in range(2))
    assert second.status_code == 202 and first.json() == second.json()
    reordered = dict(reversed(body.items())) | {"publish": False}
    assert api.create(reordered, key=key).json()["id"] == first.json()["id"]
    problem(api.create(body | {"budget": {"rho": 0.2}}, key=key), 409, "idempotency-key-reused")
    assert api.budget(population)["rho_reserved"] == 0.1
    # An idempotency key stays valid after the dataset is deleted; other callers have their own.
    api.all.delete(f"/v1/datasets/{dataset}")
    assert api.create(body, key=key).json()["id"] == first.json()["id"]
    other = api.role("curator").post("/v1/releases", json=body, headers={"Idempotency-Key": key})
    problem(other, 409, "dataset-not-ready")


def test_a_refused_request_leaves_its_key_free(api: Api) -> None:
    population = api.population(cap={"rho": 0.05})
    body, key = release_body(api.ready_dataset(population)), uuid.uuid4().hex
    found = problem(api.create(body, key=key), 409, "budget-exhausted")
    assert population in found["detail"]
    assert api.create(body | {"budget": {"rho": 0.05}}, key=key).status_code == 202


def test_many_at_once_never_exceed_the_cap(api: Api) -> None:
    population = api.population(cap={"rho": 0.875})
    body = release_body(api.ready_dataset(population), budget={"rho": 0.125})
    with ThreadPoolExecutor(CONCURRENT) as pool:
        answers = list(pool.map(lambda _: api.create(body), range(CONCURRENT)))
    statuses = [answer.status_code for answer in answers]
    assert statuses.count(202) == 7
    for answer in answers:
        if answer.status_code != 202:
            problem(answer, 409, "budget-exhausted")
    assert api.budget(population)["rho_left"] == 0
    verified = api.all.get(f"/v1/populations/{population}/ledger/verify").json()
    assert verified["ok"] and verified["entries"] == 8


def test_the_same_request_at_once_creates_one_release(api: Api) -> None:
    population = api.population()
    body, key = release_body(api.ready_dataset(population)), uuid.uuid4().hex
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: api.create(body, key=key), range(12)))
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert api.budget(population)["rho_reserved"] == 0.1


def test_dry_run_reserves_nothing_and_needs_no_rows(api: Api) -> None:
    population = api.population(cap={"rho": 0.01})
    release = api.release(api.dataset(population), dry_run=True)
    found = api.all.get(f"/v1/releases/{release}").json()
    assert found["dry_run"] and found["state"] == "queued" and found["rho_spent"] == 0
    assert api.budget(population)["rho_left"] == 0.01
    cancelled = api.all.post(f"/v1/releases/{release}/cancel").json()
    assert cancelled["state"] == "cancelled"


def test_cancelling_a_queued_release_returns_its_reservation(api: Api) -> None:
    population = api.population()
    release = api.release(api.ready_dataset(population))
    for _ in range(2):
        answer = api.role("curator").post(f"/v1/releases/{release}/cancel")
        assert answer.status_code == 200 and answer.json()["state"] == "cancelled"
        assert answer.json()["finished_at"]
    assert api.budget(population)["rho_left"] == 1.0
    with api.session() as session, session.begin():
        assert progress.start(session, uuid.UUID(release)) is None
    missing = api.all.post(f"/v1/releases/{uuid.uuid4()}/cancel")
    problem(missing, 404, "not-found")


def test_cancelling_a_running_release_asks_the_worker(api: Api) -> None:
    population = api.population()
    release = api.release(api.ready_dataset(population))
    epoch = claim(api, release)
    charge(api, release, epoch, 3 * 10**10)
    answer = api.all.post(f"/v1/releases/{release}/cancel").json()
    assert (answer["state"], answer["cancel_requested"]) == ("running", True)
    assert answer["rho_spent"] == 0.03
    with api.session() as session, session.begin():
        assert not progress.report(
            session, uuid.UUID(release), done=1, total=3, spent_units=3 * 10**10
        )
        ledger.finish(session, uuid.UUID(release), epoch=epoch)
        assert progress.finish(session, uuid.UUID(release), "cancelled")
    budget = api.budget(population)
    assert (budget["rho_spent"], budget["rho_reserved"]) == (0.03, 0.0)
    assert budget["epsilon_spent"] == epsilon_of_units(3 * 10**10, 1e-9)


def test_an_ended_release_cannot_be_cancelled(api: Api) -> None:
    release = api.release(api.ready_dataset(api.population()))
    with api.session() as session, session.begin():
        error = {"title": "Worker lost", "detail": "try again"}
        assert progress.finish(session, uuid.UUID(release), "failed", error=error)
        assert not progress.finish(session, uuid.UUID(release), "succeeded")
    problem(api.all.post(f"/v1/releases/{release}/cancel"), 409, "conflict")
    found = api.all.get(f"/v1/releases/{release}").json()
    assert (found["state"], found["error"]) == ("failed", error)


def test_deleting_a_dataset_asks_its_running_release_to_stop(api: Api) -> None:
    dataset = api.ready_dataset(api.population())
    release = api.release(dataset)
    claim(api, release)
    assert api.all.delete(f"/v1/datasets/{dataset}").status_code == 204
    found = api.all.get(f"/v1/releases/{release}").json()
    assert (found["state"], found["cancel_requested"]) == ("running", True)


def test_pagination(api: Api) -> None:
    population = api.population()
    dataset = api.ready_dataset(population)
    made = [api.release(dataset, budget={"rho": 0.01}) for _ in range(5)]
    found = [item["id"] for page in pages(api.all, "/v1/releases", 2) for item in page]
    assert found[:5] == made[::-1] and len(set(found)) == len(found)


def test_preview_of_numbers(api: Api) -> None:
    body = release_body(
        api.ready_dataset(api.population()),
        workload=[
            {"type": "binary_tree", "k": 1, "levels": 3},
            {"type": "prefixes", "count": 500, "seed": 1, "numeric": 1},
        ],
        mechanism={"name": "private_gsd", "rounds": 4, "per_round": 5, "opening_share": 0.1},
    )
    found = api.role("curator").post("/v1/releases/preview", json=body).json()
    assert [item["type"] for item in found["items"]] == ["binary_tree", "prefixes"]
    assert found["items"][1]["queries"] == 500
    # The number of rows, one measurement for each of two columns, then rounds of a selection and
    # five measurements.
    assert found["operations"] == 1 + 2 + 4 * (1 + 5)
    assert found["memory_bytes"] > 0
    refused = api.role("curator").post(
        "/v1/releases/preview", json=body | {"mechanism": {"name": "mwem"}}
    )
    assert "private_gsd" in problem(refused, 422, "cannot-work")["detail"]
