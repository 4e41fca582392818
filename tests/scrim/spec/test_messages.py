"""Errors about invalid input are sentences with the author's own names, and without values."""

import json
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from scrim.spec.messages import describe
from scrim.spec.population import PopulationSpec
from scrim.spec.release import ReleaseRequest
from scrim.spec.schema import ADVICE
from scrim.spec.two_level import DeclaredSchema
from scrim.spec.workload import Workload
from tests.scrim.column_types import TYPES

AGE = {"name": "Age", "type": "integer", "lower": 0, "upper": 99}
SEX = {"name": "Sex", "type": "categorical", "values": ["F", "M"]}
RELEASE = {
    "dataset_id": "d1",
    "workload": [{"type": "marginals", "k": 2}],
    "mechanism": {"name": "aim"},
    "budget": {"rho": 0.1},
}
PEOPLE = {"name": "people", "cap": {"rho": 1.0}, "delta": 1e-9}


def found(model: Any, content: Any) -> list[str]:
    """The sentences about `content`."""
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(model).validate_json(json.dumps(content))
    faults = caught.value.errors(include_input=False, include_url=False)
    return [describe(fault, content) for fault in faults]


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ([{**AGE, "lower": 100}], 'Age: "lower" must not be larger than "upper"'),
        (
            [SEX, {**AGE, "type": "int"}],
            f'Age: "type" must be one of: {", ".join(TYPES)}{ADVICE}',
        ),
        ([SEX, AGE, SEX], "column names must be distinct, but 'Sex' is declared twice"),
        ([{"name": "Age", "type": "integer", "lower": 0}], 'Age: "upper" is required'),
        ([{**AGE, "lower": "zero"}], 'Age: "lower" must be a whole number'),
        ([{**AGE, "bins": {"count": 200_000}}], 'Age: "bins.count" must be at most 100000'),
        ([{**AGE, "bins": {"count": 200}}], "Age: 200 bins do not fit into 100 whole numbers"),
        (
            [{**AGE, "type": "real", "bins": {"width": 1e-9}}],
            "Age: the width makes more than 100,000 bins; use a larger one",
        ),
        (
            [{**AGE, "bins": {"width": 5, "count": 20}}],
            "Age, bins: give exactly one of width, count, edges and adaptive",
        ),
        ([{**AGE, "min": 0}], 'Age: unknown field "min"; remove it or check its name'),
        ([{"type": "identifier"}], 'columns item 1: "name" is required'),
        ([SEX | {"values": ["F", 7]}], "Sex, values item 2 must be text"),
        (
            [SEX | {"values": ["F", "F"]}],
            "Sex: values must be distinct, but items 1 and 2 are the same",
        ),
        ([], '"columns" must have at least 1 item'),
    ],
)
def test_of_a_schema(columns: list[Any], sentence: str) -> None:
    assert found(DeclaredSchema, {"columns": columns}) == [sentence]


def test_a_column_of_two_linked_tables_is_shown_by_its_name() -> None:
    schema = {
        "groups": {"key": "home", "columns": [SEX, {"name": "home", "type": "identifier"}]},
        "individuals": {
            "group_key": "home",
            "columns": [{"name": "home", "type": "identifier"}, {**AGE, "upper": -1}],
        },
        "max_group_size": 5,
    }
    assert found(DeclaredSchema, schema) == ['Age: "lower" must not be larger than "upper"']


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"budget": {"rho": -1.0}}, '"budget.rho" must be greater than 0'),
        ({"budget": {}}, "budget: give exactly one of rho and epsilon"),
        ({"budget": 1.0}, '"budget" must be an object'),
        (
            {"mechanism": {"name": "aim", "speed": 3}},
            'mechanism: unknown field "speed"; remove it or check its name',
        ),
        (
            {"workload": [{"type": "marginals", "k": "2"}]},
            'workload item 1: "k" must be a whole number',
        ),
        ({"workload": []}, '"workload" must have at least 1 item'),
        ({"outputs": {"formats": ["xls"]}}, "formats item 1 must be 'csv' or 'parquet'"),
        ({"publish": "yes"}, '"publish" must be true or false'),
    ],
)
def test_of_a_release(changed: dict[str, Any], sentence: str) -> None:
    assert found(ReleaseRequest, RELEASE | changed) == [sentence]


def test_an_unknown_mechanism() -> None:
    (sentence,) = found(ReleaseRequest, RELEASE | {"mechanism": {"name": "magic"}})
    assert sentence.startswith('mechanism: "name" must be one of: auto, gaussian, ')


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"unit": "person"}, "unit 'person' needs max_rows_per_person"),
        ({"delta": 0.5}, '"delta" must be at most 0.001'),
        ({"name": "two\nlines"}, '"name" contains characters that are not allowed'),
        ({"cap": {"epsilon": 0}}, '"cap.epsilon" must be greater than 0'),
    ],
)
def test_of_a_population(changed: dict[str, Any], sentence: str) -> None:
    assert found(PopulationSpec, PEOPLE | changed) == [sentence]


def test_every_fault_has_a_sentence() -> None:
    wrong = [{**AGE, "lower": 100}, {**SEX, "values": []}]
    assert found(DeclaredSchema, {"columns": wrong}) == [
        'Age: "lower" must not be larger than "upper"',
        'Sex: "values" must have at least 1 item',
    ]


def test_the_whole_content_has_a_name() -> None:
    assert found(ReleaseRequest, 3) == ["the document must be an object"]
    assert found(Workload, [7]) == ["item 1 must be an object"]


@pytest.mark.parametrize("name", ["two\nlines", "n" * 201, "", 7])
def test_a_name_that_cannot_be_shown_is_a_number(name: Any) -> None:
    wrong = {**AGE, "name": name, "upper": "Smith"}
    sentences = found(DeclaredSchema, {"columns": [SEX, wrong]})
    assert 'columns item 2: "upper" must be a whole number' in sentences


def test_a_field_that_cannot_be_shown_is_left_out() -> None:
    (sentence,) = found(DeclaredSchema, {"columns": [{**AGE, "a\x1b[2J": 1}]})
    assert sentence == "Age: unknown field; remove it or check its name"


@pytest.mark.parametrize(
    "wrong",
    [
        {**AGE, "lower": "Smith"},
        {**AGE, "nullable": "Smith"},
        {**AGE, "type": "Smith"},
        {**AGE, "bins": "Smith"},
        {**AGE, "bins": {"edges": ["Smith", "Smith"]}},
        {**SEX, "values": "Smith"},
        {**SEX, "values": ["Smith", "Smith"]},
        {**SEX, "values": ["F"], "other": ["Smith"]},
    ],
)
def test_no_sentence_repeats_a_value(wrong: dict[str, Any]) -> None:
    assert "Smith" not in " ".join(found(DeclaredSchema, {"columns": [wrong]}))
