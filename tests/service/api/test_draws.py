"""Further sets of rows (`outputs.draws`): previewed, stored with the request, and refused with a reason."""

from typing import Any

import httpx
import pytest

from .support import Api, problem, release_body


def asked(dataset: str, draws: int, **changes: Any) -> dict[str, Any]:
    outputs = {"rows": 1000, "draws": draws}
    return release_body(dataset, **{"mechanism": {"name": "mwem"}, "outputs": outputs} | changes)


def previewed(api: Api, body: dict[str, Any]) -> dict[str, Any]:
    answer = api.role("curator").post("/v1/releases/preview", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def both(api: Api, body: dict[str, Any]) -> list[httpx.Response]:
    """The answers to the request, as a release and as a preview."""
    return [api.create(body), api.role("curator").post("/v1/releases/preview", json=body)]


def test_a_preview_states_fits_memory_and_storage(api: Api) -> None:
    dataset = api.ready_dataset(api.population())
    without, few, many = (previewed(api, asked(dataset, draws)) for draws in (1, 2, 20))
    assert without["draws"] is None
    assert (few["draws"]["sets"], few["draws"]["fits"]) == (2, 3)
    assert (many["draws"]["sets"], many["draws"]["fits"]) == (20, 21)
    assert many["draws"]["storage_bytes"] == pytest.approx(
        10 * few["draws"]["storage_bytes"], abs=10
    )
    assert few["memory_bytes"] == without["memory_bytes"] + few["draws"]["memory_bytes"]
    assert few["memory_bytes"] == many["memory_bytes"]  # one set at a time is in memory
    assert few["rho"] == without["rho"] and few["expected"] == without["expected"]


def test_a_request_keeps_its_draws(api: Api) -> None:
    dataset = api.ready_dataset(api.population())
    created = api.create(asked(dataset, 5)).json()
    assert created["outputs"]["draws"] == 5
    # One set is what every release had before the field existed, and is stored the same way.
    assert "draws" not in api.create(asked(dataset, 1)).json()["outputs"]


@pytest.mark.parametrize("name", ["dual_query", "fem", "query_gan"])
def test_games_are_refused(api: Api, name: str) -> None:
    body = asked(api.ready_dataset(api.population()), 3, mechanism={"name": name})
    for answer in both(api, body):
        refused = problem(answer, 422, "cannot-work")
        assert "measures no counts" in refused["detail"] and "outputs.draws" in refused["detail"]


def test_answers_without_rows_are_refused(api: Api) -> None:
    dataset = api.ready_dataset(api.population())
    body = asked(dataset, 3, mechanism={"name": "gaussian"}, outputs={"draws": 3})
    for answer in both(api, body):
        assert "leave outputs.draws out" in str(problem(answer, 422, "invalid")["errors"])


@pytest.mark.parametrize("draws", [0, 21, 2.5, "3"])
def test_other_numbers_are_refused(api: Api, draws: Any) -> None:
    body = asked(api.ready_dataset(api.population()), draws)
    for answer in both(api, body):
        (error,) = problem(answer, 422, "invalid")["errors"]
        assert "draws" in str(error)


def test_auto_chooses_a_mechanism_that_measures(api: Api) -> None:
    dataset = api.ready_dataset(api.population())
    found = previewed(api, asked(dataset, 3, mechanism={"name": "auto"}))
    assert found["mechanism"]["name"] != "gaussian" and found["draws"]["sets"] == 3
