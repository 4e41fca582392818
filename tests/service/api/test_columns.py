"""The columns of a release: previewed, shown, and refused where they are not part of it."""

from typing import Any

import pytest

from .support import HOUSEHOLDS, TWO_LEVEL, Api, problem, release_body

SEX = [{"type": "marginals", "attributes": [["sex"]]}]


def preview(api: Api, body: dict[str, Any]) -> dict[str, Any]:
    answer = api.role("curator").post("/v1/releases/preview", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_preview_lists_what_is_left_out(api: Api) -> None:
    dataset = api.ready_dataset(api.population())
    found = preview(api, release_body(dataset, workload=SEX))
    assert found["left_out_columns"] == ["age"]
    (warning,) = [each for each in found["warnings"] if "age" in str(each)]
    assert "not released" in str(warning) and "outputs.columns" in str(warning)
    found = preview(api, release_body(dataset))
    assert found["left_out_columns"] == []
    assert not any("not released" in str(each) for each in found["warnings"])


@pytest.mark.parametrize("name", ["mwem", "gaussian", "dual_query", "auto"])
def test_named_columns_are_previewed_and_shown(api: Api, name: str) -> None:
    dataset = api.ready_dataset(api.population())
    body = release_body(
        dataset, workload=SEX, mechanism={"name": name}, outputs={"columns": ["age"]}
    )
    found = preview(api, body)
    assert found["left_out_columns"] == []
    assert [item["queries"] for item in found["items"]] == [2, 10]
    key = f"named {name}"
    created = api.create(body, key=key).json()
    assert created["columns"] == ["sex", "age"]
    assert created["outputs"]["columns"] == ["age"]
    assert [item["attributes"] for item in created["workload"]] == [[["sex"]], [["age"]]]
    assert api.create(body, key=key).json()["id"] == created["id"]
    other = api.create(body | {"outputs": {}}, key=key)
    problem(other, 409, "idempotency-key-reused")


def test_a_typo_is_refused(api: Api) -> None:
    dataset = api.ready_dataset(api.population())
    body = release_body(dataset, workload=SEX, outputs={"columns": ["agee"]})
    for answer in (api.role("curator").post("/v1/releases/preview", json=body), api.create(body)):
        detail = problem(answer, 422, "cannot-work")["detail"]
        assert "'agee'" in detail and "sex, age" in detail


@pytest.mark.parametrize(
    "item",
    [
        {"type": "marginals", "attributes": [["sex"], ["sex", "age"]]},
        {"type": "ranges", "queries": [{"age": [0, 50]}]},
    ],
)
def test_questions_about_other_columns_are_refused(api: Api, item: dict[str, Any]) -> None:
    dataset = api.ready_dataset(api.population())
    mechanism = {"name": "private_gsd"}
    release = api.release(dataset, workload=SEX, mechanism=mechanism, publish=True)
    api.finish(release)
    assert api.role("analyst").get(f"/v1/releases/{release}").json()["columns"] == ["sex"]
    answer = api.role("analyst").post(f"/v1/releases/{release}/answers", json={"workload": [item]})
    detail = problem(answer, 422, "cannot-work")["detail"]
    assert "column 'age' is not part of this release" in detail
    assert "outputs.columns" in detail


def test_columns_of_both_tables_are_listed_in_order(api: Api) -> None:
    dataset = api.ready_dataset(api.population(**HOUSEHOLDS), TWO_LEVEL)
    asked = {"type": "hierarchical", "attributes": [["age", "town"]]}
    release = api.release(dataset, workload=[asked], mechanism={"name": "h_gem"})
    shown = api.all.get(f"/v1/releases/{release}").json()
    assert shown["columns"] == ["town", "age"]
    alone = api.release(dataset, workload=SEX, mechanism={"name": "mwem"}, table="individuals")
    assert api.all.get(f"/v1/releases/{alone}").json()["columns"] == ["sex"]


def test_a_preview_states_what_adaptive_bins_cost(api: Api) -> None:
    sex = {"name": "sex", "type": "categorical", "values": ["F", "M"]}
    days = {"name": "days", "type": "integer", "lower": -1, "upper": 1000, "special": [-1]}
    pay = {"name": "pay", "type": "real", "lower": 0, "upper": 1e6, "bins": {"adaptive": 16}}
    population = api.population()
    dataset = api.dataset(population, {"columns": [sex, days, pay]})
    stored = api.role("curator").get(f"/v1/datasets/{dataset}").json()["schema"]["columns"]
    assert stored[1]["special"] == [-1] and stored[2]["bins"] == {"adaptive": 16}
    found = preview(api, release_body(dataset))
    # One part in a hundred for each of two columns.
    assert found["bins"] == {"columns": ["days", "pay"], "share": 0.02, "rho": 0.002}
    assert found["left_out_columns"] == []
    fewer = preview(api, release_body(dataset, bins_share=0.1))
    assert fewer["bins"]["share"] == 0.1
    trees = [{"type": "binary_tree", "k": 1}]
    other = release_body(dataset, workload=trees, mechanism={"name": "private_gsd"})
    assert preview(api, other)["bins"] is None
