"""/docs: everything that the OpenAPI document has, and nothing from elsewhere."""

import re
from html import unescape
from typing import Any

import httpx
import pytest

from service.console.reference import reference_of
from tests.service.api.support import Api
from tests.service.console.support import Visitor, visitor


@pytest.fixture(scope="module")
def answer(api: Api) -> httpx.Response:
    with visitor(api) as stranger:
        return stranger.http.get("/docs")


@pytest.fixture(scope="module")
def document(api: Api) -> dict[str, Any]:
    found: dict[str, Any] = api.all.get("/openapi.json").json()
    return found


def test_it_has_every_operation_parameter_and_schema(
    answer: httpx.Response, document: dict[str, Any]
) -> None:
    assert answer.status_code == 200
    text = unescape(answer.text)
    for path, methods in document["paths"].items():
        assert f"<code>{path}</code>" in text
        for operation in methods.values():
            assert operation["summary"] in text
            for parameter in operation.get("parameters", ()):
                assert f"<code>{parameter['name']}</code>" in text
    for name, schema in document["components"]["schemas"].items():
        assert f'id="schema-{name}"' in text
        for field in schema.get("properties", {}):
            assert f"<code>{field}</code>" in text


def test_every_link_leads_somewhere(answer: httpx.Response) -> None:
    anchors = set(re.findall(r'id="([^"]+)"', answer.text))
    links = re.findall(r'href="([^"]+)"', answer.text)
    assert {each[1:] for each in links if each.startswith("#")} <= anchors
    others = {each.partition("?")[0] for each in links if not each.startswith("#")}
    assert others == {
        *("/console", "/openapi.json"),
        *("/console/static/mark.svg", "/console/static/console.css"),
    }


def test_nothing_is_inline_or_from_elsewhere(answer: httpx.Response) -> None:
    assert "//" not in re.sub(r"<pre.*?</pre>", "", answer.text, flags=re.DOTALL).replace(
        "scrim://", ""
    )
    assert re.findall(r"<script(?! src=\"/console/static/)", answer.text) == []
    assert "<style" not in answer.text and " style=" not in answer.text


def test_the_frameworks_own_pages_are_gone(everybody: Visitor) -> None:
    assert everybody.http.get("/redoc").status_code == 404
    assert "cdn" not in everybody.http.get("/docs").text


def test_types_are_written_in_words() -> None:
    fields = {
        "a": {"type": "array", "items": {"anyOf": [{"$ref": "#/x/Y"}, {"type": "null"}]}},
        "b": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": 2},
        "c": {"enum": ["x", "y"]},
        "d": {"type": "object", "additionalProperties": {"type": "string", "format": "uuid"}},
        "e": {"const": 1},
        "f": {"maxLength": 9},
        "g": {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "x"},
    }
    described = reference_of(
        {
            "info": {"title": "t", "version": "1", "description": "d"},
            "tags": [],
            "paths": {},
            "components": {"schemas": {"S": {"properties": fields, "required": ["c"]}}},
        }
    )
    (schema,) = described.schemas
    shown = {row.name: "".join(word.text for word in row.type) for row in schema.fields}
    assert shown == {
        "a": "list of Y or null",
        "b": "integer or null",
        "c": '"x" or "y"',
        "d": "object of string (uuid)",
        "e": "1",
        "f": "anything",
        "g": "string",
    }
    assert {row.name: row.limits for row in schema.fields if row.limits} == {
        "b": "at least 1, default 2",
        "f": "at most 9 characters",
        "g": "1 to 9 characters, matches x",
    }
    assert [row.name for row in schema.fields if row.required] == ["c"]
