"""Rules of a schema: declared, refused with a reason, previewed, and kept with the dataset."""

from typing import Any

import pytest

from .support import SCHEMA, TWO_LEVEL, Api, problem, release_body

RULES: list[dict[str, Any]] = [
    {"when": {"age": {"max": 15}}, "then": {"sex": ["F"]}},
    {"never": {"age": {"min": 90}, "sex": ["M"]}},
]


def declared(api: Api, schema: dict[str, Any]) -> dict[str, Any]:
    dataset = api.ready_dataset(api.population(), schema)
    found: dict[str, Any] = api.all.get(f"/v1/datasets/{dataset}").json()
    return found


def test_a_dataset_keeps_its_rules_and_a_preview_counts_them(api: Api) -> None:
    dataset = declared(api, {**SCHEMA, "rules": RULES})
    assert dataset["schema"]["rules"] == RULES
    curator = api.role("curator")
    preview = curator.post("/v1/releases/preview", json=release_body(dataset["id"])).json()
    assert preview["rules"] == 2
    alone = release_body(dataset["id"], workload=[{"type": "marginals", "attributes": [["sex"]]}])
    assert curator.post("/v1/releases/preview", json=alone).json()["rules"] == 0
    assert "rules" not in declared(api, SCHEMA)["schema"]


def test_a_preview_warns_about_values_that_rules_together_exclude(api: Api) -> None:
    rules = [
        {"when": {"age": {"max": 50}}, "then": {"sex": ["F"]}},
        {"when": {"sex": ["M"]}, "then": {"age": {"max": 50}}},
    ]
    dataset = declared(api, {**SCHEMA, "rules": rules})
    curator = api.role("curator")
    preview = curator.post("/v1/releases/preview", json=release_body(dataset["id"])).json()
    (warning,) = (w for w in preview["warnings"] if w["type"] == "/warnings/impossible-values")
    assert "M of sex" in warning["detail"]


def test_households_have_rules_about_groups(api: Api) -> None:
    rules = [
        {"group": {"where": {"age": {"min": 18}}, "at_least": 1}},
        {"never": {"town": ["a"], "sex": ["M"]}},
    ]
    dataset = api.dataset(
        api.population(unit="household", max_household_size=8), {**TWO_LEVEL, "rules": rules}
    )
    assert api.all.get(f"/v1/datasets/{dataset}").json()["schema"]["rules"] == rules


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        (
            [*RULES, {"never": {"sex": ["F"]}}, {"never": {"sex": ["M"]}}],
            "rules 3 and 4 contradict",
        ),
        ([{"never": {"weight": {"min": 1}}}], "rule 1: there is no column 'weight'"),
        ([{"compare": ["age", "==", "sex"]}], "compare"),
        ([{"when": {"age": {"max": 15}}}], "then"),
    ],
)
def test_rules_that_do_not_fit_are_refused(
    api: Api, rules: list[dict[str, Any]], reason: str
) -> None:
    body = {
        "name": "table",
        "visibility": "private",
        "population_id": api.population(),
        "schema": {**SCHEMA, "rules": rules},
    }
    refused = problem(api.all.post("/v1/datasets", json=body), 422, "invalid")
    assert any(
        reason in error["message"] or reason in refused["detail"] for error in refused["errors"]
    )
