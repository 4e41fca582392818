"""A release contains the columns that were asked about, from the request to its files."""

import csv
import io
import json
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow.parquet as pq
import pytest

from scrim.spec.workload import Marginals
from synth.models.released import ReleasedModel
from tests.worker.support import (
    H_GEM,
    HOUSEHOLDS,
    OWNED_SCHEMA,
    TWO_LEVEL,
    Stack,
    csv_rows,
    households,
)
from worker.ingest import ingest_dataset
from worker.models import ModelCache
from worker.releases import run_release

pytestmark = pytest.mark.random

COLUMNS: dict[str, list[str]] = {
    "workclass": ["private", "public"],
    "education": ["school", "college", "higher"],
    "sex": ["F", "M"],
    "income": ["<=50K", ">50K"],
    "country": ["US", "elsewhere"],
}
ADULT: dict[str, Any] = {
    "columns": [
        {"name": "age", "type": "integer", "lower": 17, "upper": 90, "bins": {"width": 10}},
        *({"name": name, "type": "categorical", "values": v} for name, v in COLUMNS.items()),
        {"name": "hours", "type": "integer", "lower": 1, "upper": 99},
    ]
}
WORKLOAD = [{"type": "marginals", "attributes": [["age", "sex"], ["sex", "income"], ["education"]]}]
ASKED = ["age", "education", "sex", "income"]


def adult_rows(rows: int = 300) -> bytes:
    rng = np.random.default_rng(1)
    lines = [
        ",".join([str(rng.integers(17, 91)), *map(rng.choice, COLUMNS.values()), "40"])
        for _ in range(rows)
    ]
    return "\n".join(["age," + ",".join(COLUMNS) + ",hours", *lines]).encode()


@pytest.fixture
def adult(stack: Stack) -> UUID:
    dataset = stack.dataset(stack.population(), ADULT)
    stack.upload(dataset, adult_rows())
    ingest_dataset(stack.context, dataset)
    return dataset


def done(stack: Stack, dataset: UUID, **changes: Any) -> UUID:
    release = stack.submit(dataset, **changes)
    run_release(stack.context, release)
    shown = stack.release(release)
    assert shown["state"] == "succeeded", shown["error"]
    return release


def lines_of(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode())))


@pytest.mark.parametrize("dry_run", [False, True])
def test_files_and_model_have_the_columns_that_were_asked_about(
    stack: Stack, adult: UUID, dry_run: bool
) -> None:
    outputs = {"rows": 40, "formats": ["csv", "parquet"], "certify": {"share": 0.1}}
    release = done(stack, adult, workload=WORKLOAD, outputs=outputs, dry_run=dry_run)
    assert stack.release(release)["columns"] == ASKED
    assert list(lines_of(stack.artifact(release, "synthetic.csv"))[0]) == ASKED
    table = pq.read_table(io.BytesIO(stack.artifact(release, "synthetic.parquet")))
    assert table.column_names == ASKED
    model = ReleasedModel.from_bytes(stack.artifact(release, "model"))
    assert model.schema.names == ASKED
    for name in ("model", "report.html", "answers.csv", "certificate.json"):
        content = stack.artifact(release, name)
        assert b"workclass" not in content and b"elsewhere" not in content
    drawn = ModelCache(stack.context).sample(release, 3)
    assert drawn.splitlines()[0] == ",".join(ASKED)


@pytest.mark.parametrize("dry_run", [False, True])
def test_numbers_without_bins_are_released_by_bins_that_were_placed(
    stack: Stack, adult: UUID, dry_run: bool
) -> None:
    item = {"type": "marginals", "attributes": [["sex", "hours"]]}
    release = done(stack, adult, workload=[item], dry_run=dry_run)
    certificate = json.loads(stack.artifact(release, "certificate.json"))["certificate"]
    edges = certificate["placed_bins"]["hours"]
    assert edges[0] == 1 and edges[-1] == 99 and len(edges) == 33
    asked = [each["asked"] for each in certificate["operations"] if each["kind"] == "measure"]
    assert asked[0].startswith("grid(hours")
    # Answers, later answers and later rows use these edges.
    lines = lines_of(stack.artifact(release, "answers.csv"))
    assert len(lines) == 4 * (32 + 1)  # F, M, other and missing; 32 bins and missing
    model = ReleasedModel.from_bytes(stack.artifact(release, "model"))
    workload = [Marginals(type="marginals", attributes=[["sex", "hours"]])]
    assert model.answer(workload).queries == [line["query"] for line in lines]
    assert len(ModelCache(stack.context).sample(release, 3).splitlines()) == 4
    assert b"hours" in stack.artifact(release, "report.html")


def test_a_column_that_was_not_asked_about_is_not_in_the_model(stack: Stack, adult: UUID) -> None:
    release = done(stack, adult, workload=WORKLOAD)
    for item in (
        {"type": "marginals", "attributes": [["sex", "workclass"]]},
        {"type": "marginals", "attributes": [["hours"]]},
    ):
        answer = stack.http.post(f"/v1/releases/{release}/answers", json={"workload": [item]})
        assert answer.status_code == 422
        name = item["attributes"][0][-1]
        assert f"'{name}' is not part of this release" in answer.json()["detail"]
        assert "outputs.columns" in answer.json()["detail"]


def test_columns_that_are_named_are_measured_and_certified(stack: Stack, adult: UUID) -> None:
    outputs = {"rows": 40, "columns": ["country"], "certify": {"share": 0.1}}
    release = done(stack, adult, workload=WORKLOAD, outputs=outputs)
    shown = stack.release(release)
    assert shown["columns"] == [*ASKED, "country"]
    assert shown["workload"][1]["attributes"] == [["country"]]
    assert list(lines_of(stack.artifact(release, "synthetic.csv"))[0]) == shown["columns"]
    answers = lines_of(stack.artifact(release, "answers.csv"))
    assert {each["basis"] for each in answers if each["item"] == "country"} == {"measured"}
    certificate = json.loads(stack.artifact(release, "certificate.json"))["certificate"]
    assert "country" in [operation["asked"] for operation in certificate["operations"]]
    assert certificate["certified_max_error"]["queries"] == len(answers)
    assert certificate["release"]["outputs"]["columns"] == ["country"]


def test_answers_say_what_they_are_based_on(stack: Stack, adult: UUID) -> None:
    mechanism = {"name": "generative_network", "components": 20, "hidden": [16], "steps": 10}
    release = done(stack, adult, workload=WORKLOAD, mechanism=mechanism)
    answers = lines_of(stack.artifact(release, "answers.csv"))
    assert list(answers[0])[2:] == [
        *("value", "count", "standard_error", "count_standard_error", "basis")
    ]
    assert {each["basis"] for each in answers} == {"measured"}
    columns = [["sex", "income"], ["age", "income"], ["age", "education"]]
    asked = [{"type": "marginals", "attributes": columns}]
    found = ModelCache(stack.context).answer(release, asked)
    bases = {each["item"]: each["basis"] for each in found}
    assert bases == {
        "sex,income": "measured",
        "age,income": "model",
        "age,education": "independent",
    }
    assert "What the" in (page := stack.artifact(release, "report.html").decode())
    assert "Measured, or a sum of measured cells" in page


def test_a_random_choice_is_answered_as_it_was_drawn(stack: Stack, adult: UUID) -> None:
    workload = [{"type": "marginals", "k": 2, "count": 2, "seed": 5}]
    release = done(stack, adult, workload=workload)
    items = list(dict.fromkeys(e["item"] for e in lines_of(stack.artifact(release, "answers.csv"))))
    assert len(items) == 2
    mentioned = {name for item in items for name in item.split(",")}
    assert set(stack.release(release)["columns"]) == mentioned


def test_people_are_identified_before_columns_are_left_out(stack: Stack) -> None:
    population = stack.population(unit="person", max_rows_per_person=2)
    dataset = stack.dataset(population, OWNED_SCHEMA)
    stack.upload(dataset, csv_rows(200))
    ingest_dataset(stack.context, dataset)
    release = done(stack, dataset, workload=[{"type": "marginals", "attributes": [["town"]]}])
    assert list(lines_of(stack.artifact(release, "synthetic.csv"))[0]) == ["town"]
    answer = stack.http.post(
        f"/v1/releases/{release}/answers",
        json={"workload": [{"type": "marginals", "attributes": [["pid"]]}]},
    )
    assert answer.status_code == 422


def test_groups_and_individuals_keep_their_keys_and_what_was_asked(stack: Stack) -> None:
    dataset = stack.dataset(stack.population(**HOUSEHOLDS), TWO_LEVEL)
    for table, content in zip(("groups", "individuals"), households(80), strict=True):
        stack.upload(dataset, content, table=table)
    ingest_dataset(stack.context, dataset)
    workload = [{"type": "hierarchical", "attributes": [["sex"]]}, {"type": "group_sizes"}]
    release = done(stack, dataset, **H_GEM | {"workload": workload}, outputs={"rows": 20})
    assert stack.release(release)["columns"] == ["sex"]
    groups = lines_of(stack.artifact(release, "synthetic_groups.csv"))
    individuals = lines_of(stack.artifact(release, "synthetic_individuals.csv"))
    assert list(groups[0]) == ["hid"] and list(individuals[0]) == ["hid", "sex"]
    named = {"rows": 20, "columns": ["town"]}
    release = done(stack, dataset, **H_GEM | {"workload": workload}, outputs=named)
    assert stack.release(release)["columns"] == ["town", "sex"]
    assert list(lines_of(stack.artifact(release, "synthetic_groups.csv"))[0]) == ["hid", "town"]
    answer = stack.http.post(
        f"/v1/releases/{release}/answers",
        json={"workload": [{"type": "hierarchical", "attributes": [["age"]]}]},
    )
    assert answer.status_code == 422 and "'age' is not part" in answer.json()["detail"]


def test_a_release_of_an_earlier_version_keeps_all_columns(stack: Stack, adult: UUID) -> None:
    """The migration records all columns, also for releases that are still queued."""
    release = stack.submit(adult, workload=WORKLOAD[:1], mechanism={"name": "private_gsd"})
    every = [column["name"] for column in ADULT["columns"][:-1]]
    stack.scalar("UPDATE release SET columns = :all WHERE id = :id", all=every, id=release)
    run_release(stack.context, release)
    assert list(lines_of(stack.artifact(release, "synthetic.csv"))[0]) == every
