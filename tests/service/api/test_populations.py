"""Populations own a budget; the ledger shows every change of it."""

import itertools
import uuid
from datetime import UTC, datetime

import pytest

from scrim.spec.budget import rho_of_units, units_of_epsilon
from service.data.ledger.records import AuditEntry
from service.ledger.endpoints import EntryView

from .support import Api, pages, problem

BODY = {"name": "people", "cap": {"rho": 0.5}, "delta": 1e-9}


def test_create_and_show(api: Api) -> None:
    admin = api.role("admin")
    answer = admin.post("/v1/populations", json=BODY)
    assert answer.status_code == 201
    body = answer.json()
    assert answer.headers["location"] == f"/v1/populations/{body['id']}"
    assert body["unit"] == "row" and body["relation"] == "add_remove"
    assert body["cap"] == {"rho": 0.5, "epsilon": None}
    assert body["budget"] == {
        "rho_cap": 0.5,
        "rho_spent": 0.0,
        "rho_reserved": 0.0,
        "rho_left": 0.5,
        "epsilon_spent": 0.0,
        "delta": 1e-9,
        "as_of": body["budget"]["as_of"],
    }
    for role in ("admin", "curator", "analyst"):
        shown = api.role(role).get(answer.headers["location"]).json()
        assert (shown["budget"].pop("as_of") is None) == (role == "curator")
        assert shown == body | {"budget": shown["budget"]}
        assert shown["budget"].items() < body["budget"].items()
    unknown = admin.get(f"/v1/populations/{uuid.uuid4()}")
    problem(unknown, 404, "not-found")


def test_a_cap_in_epsilon_is_converted_once_and_rounded_down(api: Api) -> None:
    body = BODY | {"cap": {"epsilon": 1.0}, "delta": 1e-6}
    found = api.role("admin").post("/v1/populations", json=body).json()
    assert found["cap"] == {"rho": None, "epsilon": 1.0}
    assert found["budget"]["rho_cap"] == rho_of_units(units_of_epsilon(1.0, 1e-6))


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        ({"cap": {"rho": 0.5, "epsilon": 1.0}}, "cap: give exactly one of rho and epsilon"),
        ({"cap": {}}, "cap: give exactly one of rho and epsilon"),
        ({"cap": {"rho": -1.0}}, '"cap.rho" must be greater than 0'),
        ({"cap": {"rho": "0.5"}}, '"cap.rho" must be a number'),
        ({"delta": 0.5}, '"delta" must be at most 0.001'),
        ({"delta": 0.0}, '"delta" must be at least 0.000000000000000001'),
        ({"unit": "person"}, "unit 'person' needs max_rows_per_person"),
        ({"unit": "planet"}, "\"unit\" must be 'row', 'person' or 'household'"),
        ({"colour": "red"}, 'unknown field "colour"; remove it or check its name'),
        ({"name": ""}, '"name" must have at least 1 character'),
        (
            {"name": "", "delta": 0.5, "colour": "red"},
            '"name" must have at least 1 character (and 2 more errors, listed in errors)',
        ),
    ],
)
def test_refused(api: Api, changes: dict[str, object], detail: str) -> None:
    found = problem(api.role("admin").post("/v1/populations", json=BODY | changes), 422, "invalid")
    assert found["errors"] and all(set(each) == {"loc", "message"} for each in found["errors"])
    assert found["errors"][0]["loc"][0] == "body"
    assert found["detail"] == detail


def test_a_cap_below_one_unit_is_refused(api: Api) -> None:
    answer = api.role("admin").post("/v1/populations", json=BODY | {"cap": {"rho": 1e-13}})
    problem(answer, 422, "cannot-work")


def test_repeating_with_a_key_creates_once(api: Api) -> None:
    headers = {"Idempotency-Key": uuid.uuid4().hex}
    first, second = (
        api.role("admin").post("/v1/populations", json=BODY, headers=headers) for _ in range(2)
    )
    assert first.json() == second.json() and second.status_code == 201
    other = api.role("admin").post(
        "/v1/populations", json=BODY | {"name": "others"}, headers=headers
    )
    problem(other, 409, "idempotency-key-reused")


def test_pagination(api: Api) -> None:
    made = [api.population() for _ in range(5)]
    found = pages(api.all, "/v1/populations", 2)
    assert all(len(page) == 2 for page in found[:-1])
    ids = [item["id"] for page in found for item in page]
    assert ids[:5] == made[::-1] and len(set(ids)) == len(ids)
    for cursor in ("x", "AAAA", "WzEsMl0=", "e30=", "W10="):
        answer = api.all.get("/v1/populations", params={"cursor": cursor})
        found_problem = problem(answer, 422, "invalid")
        assert found_problem["errors"][0]["loc"] == ["query", "cursor"]
    for limit in ("0", "201", "x"):
        problem(api.all.get("/v1/populations", params={"limit": limit}), 422, "invalid")


def test_ledger_pages_and_verification(api: Api) -> None:
    population = api.population()
    dataset = api.ready_dataset(population)
    releases = [api.release(dataset) for _ in range(3)]
    curator = api.role("curator")
    path = f"/v1/populations/{population}/ledger"
    entries = [entry for page in pages(curator, path, 2) for entry in page]
    assert [entry["seq"] for entry in entries] == [1, 2, 3, 4]
    assert [entry["kind"] for entry in entries] == ["open_account", *["reserve"] * 3]
    assert [entry["release_id"] for entry in entries] == [None, *releases]
    assert [entry["rho"] for entry in entries] == [1.0, 0.1, 0.1, 0.1]
    for earlier, later in itertools.pairwise(entries):
        assert later["previous_hash"] == earlier["hash"]
    assert set(entries[0]) == {
        "seq", "at", "kind", "release_id", "operation", "rho", "digest", "hash",
        "previous_hash",
    }  # fmt: skip
    verified = curator.get(f"{path}/verify").json()
    assert verified == {"ok": True, "entries": 4, "head": entries[-1]["hash"], "fault": None}
    for cursor in ("LTE=", "MTAwMDAwMDAwMDAwMDAwMDAwMDAwMDA=", "InRleHQi"):
        problem(curator.get(path, params={"cursor": cursor}), 422, "invalid")
    for part in ("", "/verify"):
        missing = curator.get(f"/v1/populations/{uuid.uuid4()}/ledger{part}")
        problem(missing, 404, "not-found")


def test_the_time_between_two_operations_is_not_shown() -> None:
    """The time depends on the rows: selecting among clear winners is faster than among near ties."""
    at = datetime(2030, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
    operation = AuditEntry(3, at, "operation", uuid.uuid4(), 0, 5, bytes(32), bytes(32))
    reserved = AuditEntry(2, at, "reserve", uuid.uuid4(), None, 5, bytes(32), bytes(32))
    assert EntryView.of(operation).at == datetime(2030, 5, 6, 7, tzinfo=UTC)
    assert EntryView.of(reserved).at == at
