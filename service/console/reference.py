"""/docs: the OpenAPI document as a page that loads nothing from other sites."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import HTMLResponse

from service.console.pages import rendered
from service.console.route import ConsoleRoute

router = APIRouter(route_class=ConsoleRoute)

# The keywords of a JSON Schema for the lower and the upper limit, and the unit they count.
_LIMITS = (
    ("minimum", "maximum", ""),
    ("minLength", "maxLength", " characters"),
    ("minItems", "maxItems", " items"),
)
_OTHER_LIMITS = {
    "exclusiveMinimum": "more than {:,.15g}",
    "exclusiveMaximum": "less than {:,.15g}",
    "pattern": "matches {}",
}


@dataclass(frozen=True)
class Word:
    """A part of a type; `schema` names the schema that it links to, if any."""

    text: str
    schema: str | None = None


@dataclass(frozen=True)
class FieldRow:
    """A parameter, or a field of a body or an answer."""

    name: str
    type: list[Word]
    limits: str
    text: str
    required: bool
    place: str = ""
    """Where a parameter is sent: `path`, `query` or `header`."""


@dataclass(frozen=True)
class Content:
    """A body or an answer."""

    text: str
    media_types: str
    type: list[Word]
    example: str = ""
    status: str = ""


@dataclass(frozen=True)
class ReferenceEntry:
    """One operation: a method at one address."""

    anchor: str
    method: str
    path: str
    title: str
    text: str
    needs_key: bool
    parameters: list[FieldRow]
    body: Content | None
    answers: list[Content]
    problems: list[Content]


@dataclass(frozen=True)
class Chapter:
    """The operations on one kind of thing."""

    name: str
    text: str
    operations: list[ReferenceEntry]


@dataclass(frozen=True)
class SchemaRow:
    """A named shape of bodies or answers."""

    name: str
    text: str
    fields: list[FieldRow]


@dataclass(frozen=True)
class Reference:
    """The whole document."""

    title: str
    version: str
    text: str
    chapters: list[Chapter]
    schemas: list[SchemaRow]


@router.get("/docs")
def show(request: Request) -> Response:
    """The reference of the API."""
    return HTMLResponse(_page(request.app))


# The page is the same for every visitor and slow to build, so it is built once.
@lru_cache(maxsize=1)
def _page(app: FastAPI) -> str:
    return rendered("reference.html", path="/docs", reference=reference_of(app.openapi()))


def reference_of(document: Mapping[str, Any]) -> Reference:
    """Arrange an OpenAPI document in reading order."""
    operations = [
        (described["tags"][0], _operation(method, path, described))
        for path, methods in document["paths"].items()
        for method, described in methods.items()
    ]
    return Reference(
        title=document["info"]["title"],
        version=document["info"]["version"],
        text=document["info"]["description"],
        chapters=[
            Chapter(
                tag["name"],
                tag["description"],
                [operation for name, operation in operations if name == tag["name"]],
            )
            for tag in document["tags"]
        ],
        schemas=[
            SchemaRow(name, described.get("description", ""), list(_fields(described)))
            for name, described in sorted(document["components"]["schemas"].items())
        ],
    )


def _operation(method: str, path: str, described: Mapping[str, Any]) -> ReferenceEntry:
    answers = [_content(answer, status=status) for status, answer in described["responses"].items()]
    body = described.get("requestBody")
    return ReferenceEntry(
        anchor=described["operationId"],
        method=method.upper(),
        path=path,
        title=described["summary"],
        text=described.get("description", ""),
        needs_key="security" in described,
        parameters=[_parameter(each) for each in described.get("parameters", ())],
        body=None if body is None else _content(body),
        answers=[each for each in answers if each.status < "4"],
        problems=[each for each in answers if each.status >= "4"],
    )


def _parameter(described: Mapping[str, Any]) -> FieldRow:
    return FieldRow(
        name=described["name"],
        type=list(_words(described["schema"])),
        limits=_limits(described["schema"]),
        text=described.get("description", ""),
        required=described["required"],
        place=described["in"],
    )


def _fields(schema: Mapping[str, Any]) -> Iterator[FieldRow]:
    required = schema.get("required", ())
    for name, described in schema.get("properties", {}).items():
        yield FieldRow(
            name=name,
            type=list(_words(described)),
            limits=_limits(described),
            text=described.get("description", ""),
            required=name in required,
        )


def _content(described: Mapping[str, Any], *, status: str = "") -> Content:
    content: Mapping[str, Any] = described.get("content", {})
    schema: Mapping[str, Any] = next(
        (each["schema"] for each in content.values() if "schema" in each), {}
    )
    examples = schema.get("examples", ())
    return Content(
        text=described.get("description", ""),
        media_types=", ".join(content),
        type=list(_words(schema)) if schema else [],
        example=json.dumps(examples[0], indent=2) if examples else "",
        status=status,
    )


def _words(schema: Mapping[str, Any]) -> Iterator[Word]:
    """A type in words, such as `list of Marginals or Ranges`."""
    options = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        yield Word(name, name)
    elif options:
        for number, option in enumerate(options):
            yield from [Word(" or ")] if number else []
            yield from _words(option)
    elif "const" in schema or "enum" in schema:
        yield Word(" or ".join(map(json.dumps, schema.get("enum", [schema.get("const")]))))
    elif schema.get("type") == "array":
        yield Word("list of ")
        yield from _words(schema.get("items", {}))
    elif isinstance(inner := schema.get("additionalProperties"), Mapping):
        yield Word("object of ")
        yield from _words(inner)
    else:
        kind = schema.get("type", "anything")
        yield Word(f"{kind} ({schema['format']})" if "format" in schema else kind)


def _limits(schema: Mapping[str, Any]) -> str:
    """The limits of a value, and its default."""
    found = [
        _span(schema.get(lower), schema.get(upper)) + unit
        for lower, upper, unit in _LIMITS
        if lower in schema or upper in schema
    ]
    found += [text.format(schema[name]) for name, text in _OTHER_LIMITS.items() if name in schema]
    # An optional value is a union of its type and null.
    found += filter(None, map(_limits, schema.get("anyOf", ())))
    if "default" in schema:
        found.append(f"default {json.dumps(schema['default'])}")
    return ", ".join(found)


def _span(lower: float | None, upper: float | None) -> str:
    if lower is not None and upper is not None:
        return f"{lower:,.15g} to {upper:,.15g}"
    return f"at least {lower:,.15g}" if upper is None else f"at most {upper:,.15g}"
