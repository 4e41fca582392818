"""Texts that a database cannot store are refused wherever they could reach one."""

from collections.abc import Iterator
from typing import Any

import pytest

from .support import SCHEMA, Api, problem
from .test_openapi import DOCUMENT, OPERATIONS

RESTRICTED = {"const", "enum", "format", "pattern"}


def strings(described: Any, path: str, seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """The places in a JSON Schema where any text may stand."""
    if isinstance(described, list):
        for each in described:
            yield from strings(each, path, seen)
    if not isinstance(described, dict):
        return
    if (reference := described.get("$ref")) is not None and reference not in seen:
        name = reference.rpartition("/")[2]
        found = DOCUMENT["components"]["schemas"][name]
        yield from strings(found, name, seen | {reference})
    if described.get("type") == "string" and RESTRICTED.isdisjoint(described):
        yield path
    for name, inner in described.get("properties", {}).items():
        yield from strings(inner, f"{path}.{name}", seen)
    for name in ("items", "anyOf", "oneOf", "allOf", "additionalProperties", "propertyNames"):
        yield from strings(described.get(name), path, seen)


def test_every_text_of_a_body_is_restricted() -> None:
    bodies = [
        content["schema"]
        for _, _, operation in OPERATIONS
        for kind, content in operation.get("requestBody", {}).get("content", {}).items()
        if kind == "application/json"
    ]
    assert len(bodies) >= 5
    assert {place for body in bodies for place in strings(body, "body")} == set()


@pytest.mark.parametrize("text", ["\0", "a\0b"])
@pytest.mark.parametrize("field", ["values", "other", "name"])
def test_a_schema_with_nul_is_refused(api: Api, field: str, text: str) -> None:
    column = SCHEMA["columns"][0] | {field: [text] if field == "values" else text}
    body = {
        "name": "table",
        "visibility": "public",
        "provenance": "p",
        "disjoint_from_population": True,
        "schema": {"columns": [column]},
    }
    problem(api.all.post("/v1/datasets", json=body), 422, "invalid")


def test_numbers_with_too_many_digits_are_refused(api: Api) -> None:
    body = b'{"name": "p", "delta": 1e-9, "cap": {"rho": ' + b"9" * 5000 + b"}}"
    headers = {"Content-Type": "application/json"}
    for content in (body, b"[" * 5000, b'{"name": "\\ud800", "cap": {"rho": 1}, "delta": 1e-9}'):
        answer = api.all.post("/v1/populations", content=content, headers=headers)
        problem(answer, 422, "invalid")


@pytest.mark.parametrize("path", ["populations", "datasets", "releases", "keys"])
@pytest.mark.parametrize("cursor", ["\0", "IlwwIg==", "OTk5" * 40, "[" * 200])
def test_cursors_that_are_none(api: Api, path: str, cursor: str) -> None:
    answer = api.all.get(f"/v1/{path}", params={"cursor": cursor})
    problem(answer, 422, "invalid")
