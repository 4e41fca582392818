"""Requests for a release: what is accepted, and that an error never repeats the input."""

import copy
import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from scrim.spec.population import PopulationSpec, Protection
from scrim.spec.release import DEFAULT_ROWS, ReleaseRequest
from scrim.spec.schema import Schema

BODY: dict[str, Any] = {
    "dataset_id": "d-1",
    "public_dataset_id": None,
    "workload": [{"type": "marginals", "k": 3}],
    "mechanism": {"name": "mwem", "rounds": 50},
    "budget": {"epsilon": 1.0},
    "outputs": {
        "rows": 50000,
        "formats": ["csv", "parquet"],
        "answers": True,
        "certify": {"share": 0.02, "confidence": 0.95},
    },
    "publish": True,
    "dry_run": False,
}
MINIMAL: dict[str, Any] = {
    "dataset_id": "d-1",
    "workload": [{"type": "marginals", "k": 3}],
    "mechanism": {"name": "mwem"},
    "budget": {"rho": 0.5},
}
POPULATION: dict[str, Any] = {
    "name": "patients",
    "unit": "person",
    "relation": "add_remove",
    "max_rows_per_person": 3,
    "cap": {"rho": 1.0},
    "delta": 1e-9,
}
SCHEMA: dict[str, Any] = {
    "columns": [
        {"name": "sex", "type": "categorical", "values": ["F", "M"], "other": "X"},
        {"name": "age", "type": "integer", "lower": 0, "upper": 99, "bins": {"width": 10}},
        {"name": "pay", "type": "real", "lower": 0.0, "upper": 1.0, "bins": {"edges": [0.0, 1.0]}},
        {"name": "pid", "type": "identifier"},
    ]
}
CANARY = "canary-7f3a"


def test_the_example_of_the_contract() -> None:
    request = ReleaseRequest.model_validate_json(json.dumps(BODY))
    assert request.synthetic_rows == 50000
    assert request.mechanism.name == "mwem"
    assert request.outputs.certify is not None and request.outputs.certify.confidence == 0.95
    assert ReleaseRequest.model_validate_json(request.model_dump_json()) == request


def test_the_smallest_request() -> None:
    request = ReleaseRequest.model_validate(MINIMAL)
    assert request.synthetic_rows == DEFAULT_ROWS
    assert request.outputs.formats == ["csv"] and request.outputs.answers
    assert not request.publish and not request.dry_run


# Strictness ---------------------------------------------------------------------------------------


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in a document, outermost first."""
    if path:
        yield path
    children = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in children if isinstance(document, dict | list) else ():
        yield from places(value, (*path, key)) if isinstance(value, dict | list) else [(*path, key)]


def replaced(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy of the document with another value in one place."""
    changed = copy.deepcopy(document)
    node = changed
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return changed


def value_at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


DOCUMENTS: list[tuple[Any, dict[str, Any]]] = [
    (ReleaseRequest, BODY),
    (PopulationSpec, POPULATION),
    (Schema, SCHEMA),
]


def is_number(value: Any) -> bool:
    return type(value) in (int, float)


@pytest.mark.parametrize(("model", "body"), DOCUMENTS)
@pytest.mark.parametrize("wrong", ["1", True, math.nan, math.inf, -math.inf, [1], {}], ids=repr)
def test_a_number_is_a_finite_number(model: Any, body: Any, wrong: Any) -> None:
    numbers = [path for path in places(body) if is_number(value_at(body, path))]
    assert numbers
    for path in numbers:
        with pytest.raises(ValidationError):
            model.model_validate(replaced(body, path, wrong))


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_json_holds_finite_numbers_only(text: str) -> None:
    body = json.dumps(MINIMAL).replace("0.5", text)
    with pytest.raises(ValidationError):
        ReleaseRequest.model_validate_json(body)


@pytest.mark.parametrize(("model", "body"), DOCUMENTS)
def test_unknown_fields_are_refused(model: Any, body: Any) -> None:
    for path in [(), *places(body)]:
        if isinstance(value_at(body, path), dict):
            with pytest.raises(ValidationError):
                model.model_validate(replaced(body, (*path, "unknown"), 1))


@pytest.mark.parametrize("flag", [1, 0, "true", None])
def test_a_flag_is_true_or_false(flag: Any) -> None:
    with pytest.raises(ValidationError):
        ReleaseRequest.model_validate({**MINIMAL, "publish": flag})


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ({"rows": 0}, "greater than or equal to 1"),
        ({"rows": 10**9}, "less than or equal"),
        ({"formats": []}, "at least 1"),
        ({"formats": ["csv", "csv"]}, "lists the same format twice"),
        ({"formats": ["xlsx"]}, "'csv' or 'parquet'"),
        ({"certify": {"share": 1.0}}, "less than 1"),
        ({"certify": {"confidence": 1.0}}, "less than or equal"),
    ],
)
def test_refused_outputs(outputs: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ReleaseRequest.model_validate({**MINIMAL, "outputs": outputs})


@pytest.mark.parametrize(
    ("outputs", "field"),
    [({"rows": 10}, "rows"), ({"certify": {}}, "certify"), ({"answers": False}, "answers")],
)
def test_what_answers_only_releases_no_rows(outputs: dict[str, Any], field: str) -> None:
    body = {**MINIMAL, "mechanism": {"name": "gaussian"}}
    assert ReleaseRequest.model_validate(body).synthetic_rows is None
    with pytest.raises(ValidationError, match=f"outputs.{field}"):
        ReleaseRequest.model_validate({**body, "outputs": outputs})


# What a refusal says ------------------------------------------------------------------------------


def refusal(validate: Any, given: Any) -> str:
    """The full text of an error; empty if there is none."""
    try:
        validate(given)
    except ValidationError as refused:
        return f"{refused} {refused!r} {refused.errors(include_input=False, include_url=False)}"
    return ""


@pytest.mark.parametrize(("model", "body"), DOCUMENTS)
@pytest.mark.parametrize(
    "wrong",
    [CANARY, CANARY * 100, f"{CANARY}\n", [CANARY], {"name": CANARY}, [[CANARY, CANARY]]],
    ids=["text", "long text", "line", "list", "object", "lists"],
)
def test_a_refusal_never_repeats_the_input(model: Any, body: Any, wrong: Any) -> None:
    refusals = []
    for path in places(body):
        changed = replaced(body, path, wrong)
        refusals.append(refusal(model.model_validate, changed))
        refusals.append(refusal(model.model_validate_json, json.dumps(changed)))
    assert sum(map(bool, refusals)) > len(refusals) / 2
    assert not any(CANARY in text for text in refusals)


def test_a_refusal_of_repeated_values_does_not_show_them() -> None:
    changed = replaced(SCHEMA, ("columns", 0, "values"), [CANARY, CANARY])
    with pytest.raises(ValidationError) as refused:
        Schema.model_validate(changed)
    assert CANARY not in str(refused.value)


def test_broken_json_is_not_repeated() -> None:
    with pytest.raises(ValidationError) as refused:
        ReleaseRequest.model_validate_json('{"dataset_id": "' + CANARY)
    assert CANARY not in str(refused.value)


# Protection ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "rows", "row_count"),
    [
        ({}, 1, 1),
        ({"relation": "replace_one"}, 1, 0),
        ({"unit": "person", "max_rows_per_person": 3}, 3, 3),
        ({"unit": "person", "max_rows_per_person": 3, "relation": "replace_one"}, 3, 2),
        ({"unit": "household", "max_household_size": 5}, 5, 5),
    ],
)
def test_what_one_unit_moves(fields: dict[str, Any], rows: int, row_count: int) -> None:
    protection = Protection.model_validate(fields)
    assert (protection.max_rows_per_unit, protection.row_count_sensitivity) == (rows, row_count)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"unit": "person"}, "needs max_rows_per_person"),
        ({"unit": "household"}, "needs max_household_size"),
        ({"max_rows_per_person": 2}, "does not apply"),
        ({"unit": "person", "max_rows_per_person": 0}, "greater than or equal"),
        ({"unit": "person", "max_rows_per_person": 2, "max_household_size": 2}, "does not apply"),
        ({"unit": "family"}, "'row', 'person' or 'household'"),
        ({"relation": "bounded"}, "'add_remove' or 'replace_one'"),
    ],
)
def test_refused_protections(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Protection.model_validate(fields)
