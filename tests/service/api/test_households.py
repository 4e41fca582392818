"""Groups of individuals: what may be declared, what a release of them costs, and what it answers."""

from typing import Any

import httpx
import pytest

from .support import HOUSEHOLDS, SCHEMA, TWO_LEVEL, Api, problem, release_body

PEOPLE: dict[str, Any] = {"unit": "person", "max_rows_per_person": 2}
EQUAL_SHARES = {"name": "gaussian", "consistent": False, "objective": "max"}
PERSON = {"name": "pid", "type": "identifier"}
OWNED = TWO_LEVEL | {
    "individuals": {"group_key": "hid", "columns": [*SCHEMA["columns"], PERSON]},
}
H_GEM: dict[str, Any] = {
    "workload": [{"type": "hierarchical", "k": 2}, {"type": "group_sizes"}],
    "mechanism": {"name": "h_gem", "rounds": 3},
}


def declare(api: Api, protection: dict[str, Any], schema: Any) -> httpx.Response:
    population = api.population(**protection)
    body = {"name": "x", "visibility": "private", "population_id": population, "schema": schema}
    return api.all.post("/v1/datasets", json=body)


def preview(api: Api, dataset: str, **changes: Any) -> dict[str, Any]:
    answer = api.all.post("/v1/releases/preview", json=release_body(dataset, **changes))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


class TestDeclaring:
    @pytest.mark.parametrize(
        ("protection", "schema", "told"),
        [
            ({}, TWO_LEVEL, "household or person"),
            (HOUSEHOLDS, TWO_LEVEL | {"max_group_size": 9}, "at most 8"),
            (PEOPLE, TWO_LEVEL, "exactly one identifier"),
            (
                PEOPLE,
                TWO_LEVEL
                | {
                    "individuals": {"group_key": "hid", "columns": [PERSON, PERSON | {"name": "q"}]}
                },
                "there are 2",
            ),
            # The group's key does not identify people.
            (
                PEOPLE,
                TWO_LEVEL | {"individuals": {"group_key": "pid", "columns": [PERSON]}},
                "there are 0",
            ),
        ],
    )
    def test_units_that_cannot_be_bounded_are_refused(
        self, api: Api, protection: dict[str, Any], schema: Any, told: str
    ) -> None:
        found = problem(declare(api, protection, schema), 422, "cannot-work")
        assert told in found["detail"]

    @pytest.mark.parametrize(
        ("protection", "schema"),
        [(HOUSEHOLDS, TWO_LEVEL), (HOUSEHOLDS, OWNED), (PEOPLE, OWNED)],
    )
    def test_units_that_can(self, api: Api, protection: dict[str, Any], schema: Any) -> None:
        assert declare(api, protection, schema).status_code == 201


class TestPreview:
    def test_a_household_moves_one_group_or_all_its_individuals(self, api: Api) -> None:
        """The dataset's groups have at most five individuals, whatever the population allows."""
        dataset = api.dataset(api.population(**HOUSEHOLDS), TWO_LEVEL)
        asked = {"mechanism": EQUAL_SHARES, "workload": [{"type": "marginals", "k": 1}]}
        (groups,) = preview(api, dataset, table="groups", **asked)["items"]
        (people,) = preview(api, dataset, table="individuals", **asked)["items"]
        # Two marginals of individuals share the budget that one of groups has alone.
        assert people["sigma"] == pytest.approx(5 * 2**0.5 * groups["sigma"])

    def test_both_tables_at_once(self, api: Api) -> None:
        dataset = api.dataset(api.population(**HOUSEHOLDS), TWO_LEVEL)
        found = preview(api, dataset, **H_GEM)
        sizes = found["items"][1]
        assert (sizes["type"], sizes["queries"]) == ("group_sizes", 5)
        # Groups, the initial measurements (individuals, sizes, three columns), three rounds of two.
        assert found["operations"] == 1 + 5 + 3 * 2
        assert found["memory_bytes"] > 0
        assert not [each for each in found["warnings"] if "columns-of-groups" in each["type"]]

    @pytest.mark.parametrize(
        ("changes", "is_warned"),
        [
            (H_GEM, True),
            (H_GEM | {"workload": [{"type": "hierarchical", "attributes": [["sex"]]}]}, False),
            ({"table": "individuals"}, False),
        ],
    )
    def test_people_who_could_change_their_group(
        self, api: Api, changes: dict[str, Any], is_warned: bool
    ) -> None:
        dataset = api.dataset(api.population(**PEOPLE), OWNED)
        warnings = preview(api, dataset, **changes)["warnings"]
        found = [
            each for each in warnings if "no person can change a group's columns" in each["detail"]
        ]
        assert len(found) == is_warned

    def test_the_groups_of_people_are_not_released_alone(self, api: Api) -> None:
        """A row of the groups has no owner, so the influence of a person is not bounded there."""
        dataset = api.dataset(api.population(**PEOPLE), OWNED)
        asked = release_body(dataset, table="groups", workload=[{"type": "marginals", "k": 1}])
        found = problem(api.all.post("/v1/releases/preview", json=asked), 422, "cannot-work")
        assert "leave `table` out" in found["detail"]

    @pytest.mark.parametrize(("protection", "is_told"), [(PEOPLE, True), (HOUSEHOLDS, False)])
    def test_counts_that_nobody_can_change_are_read_without_noise(
        self, api: Api, protection: dict[str, Any], is_told: bool
    ) -> None:
        dataset = api.dataset(api.population(**protection, relation="replace_one"), OWNED)
        warnings = preview(api, dataset, **H_GEM)["warnings"]
        assert any("are read without noise" in each["detail"] for each in warnings) == is_told


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, "name one of the two in `table`"),
        (H_GEM | {"table": "groups"}, "h_gem works on groups of individuals"),
        ({"table": "groups", "workload": H_GEM["workload"]}, "mwem cannot answer hierarchical"),
        (H_GEM | {"workload": [{"type": "marginals", "k": 2}]}, "h_gem cannot answer marginals"),
    ],
)
def test_what_does_not_fit_two_levels_is_refused(
    api: Api, changes: dict[str, Any], told: str
) -> None:
    dataset = api.ready_dataset(api.population(**HOUSEHOLDS), TWO_LEVEL)
    assert (
        told in problem(api.create(release_body(dataset, **changes)), 422, "cannot-work")["detail"]
    )


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (H_GEM, "this is one table of rows"),
        ({"table": "groups"}, "leave it out"),
    ],
)
def test_what_does_not_fit_one_table_is_refused(
    api: Api, changes: dict[str, Any], told: str
) -> None:
    dataset = api.ready_dataset(api.population())
    assert (
        told in problem(api.create(release_body(dataset, **changes)), 422, "cannot-work")["detail"]
    )


def test_a_table_without_columns_is_not_released_alone(api: Api) -> None:
    keys_only = TWO_LEVEL | {
        "groups": {"key": "hid", "columns": [{"name": "hid", "type": "identifier"}]}
    }
    dataset = api.dataset(api.population(**HOUSEHOLDS), keys_only)
    refused = api.all.post("/v1/releases/preview", json=release_body(dataset, table="groups"))
    assert "no columns to release" in problem(refused, 422, "cannot-work")["detail"]


@pytest.fixture(scope="module")
def finished(api: Api) -> dict[str, str]:
    """A finished release of both tables, and one of the groups alone."""
    dataset = api.ready_dataset(api.population(**HOUSEHOLDS), TWO_LEVEL)
    releases = {
        "both": api.release(dataset, publish=True, **H_GEM),
        "groups": api.release(
            dataset, publish=True, table="groups", workload=[{"type": "marginals", "k": 1}]
        ),
    }
    for release in releases.values():
        api.finish(release)
    return releases


class TestQuestions:
    def test_the_table_is_shown(self, api: Api, finished: dict[str, str]) -> None:
        shown = {
            name: api.all.get(f"/v1/releases/{each}").json() for name, each in finished.items()
        }
        assert (shown["both"]["table"], shown["groups"]["table"]) == (None, "groups")

    @pytest.mark.parametrize(
        ("release", "item"),
        [
            ("both", {"type": "marginals", "k": 1}),
            ("both", {"type": "hierarchical", "attributes": [["height"]]}),
            ("groups", {"type": "hierarchical", "k": 1}),
            ("groups", {"type": "group_sizes"}),
            # A column of the other table.
            ("groups", {"type": "marginals", "attributes": [["sex"]]}),
        ],
    )
    def test_what_the_model_does_not_know_is_refused(
        self, api: Api, finished: dict[str, str], release: str, item: Any
    ) -> None:
        path = f"/v1/releases/{finished[release]}/answers"
        answer = api.role("analyst").post(path, json={"workload": [item]})
        problem(answer, 422, "cannot-work")

    def test_a_sample_counts_groups(self, api: Api, finished: dict[str, str]) -> None:
        """Groups of five: a fifth of the rows that an answer may have."""
        path = f"/v1/releases/{finished['both']}/samples"
        refused = problem(api.role("analyst").post(path, json={"rows": 20_001}), 422, "invalid")
        assert "at most 20,000 groups" in refused["detail"]
        assert refused["errors"][0]["loc"] == ["body", "rows"]
