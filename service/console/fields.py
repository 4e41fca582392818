"""Fields of a form, built from the JSON Schema of a model, so forms match the API's documentation."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from service.console.forms import Form, load_json, number

Kind = Literal["integer", "number", "choice", "flag", "sets", "json"]


@dataclass(frozen=True)
class Field:
    """One parameter: its form field and the submitted value."""

    name: str
    kind: Kind
    help: str
    value: str = ""
    default: str = ""
    """The value used if the field is left empty, as text."""
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    required: bool = False

    @property
    def label(self) -> str:
        """The name as shown in the form."""
        return self.name.replace("_", " ").capitalize()


def fields_of(schema: Mapping[str, Any], *, without: Iterable[str] = ()) -> list[Field]:
    """A field for each property of a JSON Schema."""
    left_out, required = set(without), set(schema.get("required", ()))
    return [
        _field(name, described, is_required=name in required)
        for name, described in schema["properties"].items()
        if name not in left_out and "const" not in described
    ]


def filled(fields: Iterable[Field], form: Form, prefix: str) -> list[Field]:
    """The fields with their values from a form."""
    return [
        Field(**{**vars(field), "value": form.text(prefix + field.name, field.value)})
        for field in fields
    ]


def shown(fields: Iterable[Field], values: Mapping[str, Any]) -> list[Field]:
    """The fields with their values from a body."""
    return [
        Field(**{**vars(field), "value": _written(field.kind, values.get(field.name))})
        for field in fields
    ]


def values_of(fields: Iterable[Field]) -> dict[str, Any]:
    """The submitted values in the types that the model expects, without empty fields."""
    return {field.name: _read(field.kind, field.value) for field in fields if field.value}


def _field(name: str, described: Mapping[str, Any], *, is_required: bool) -> Field:
    # An optional parameter is a union of its type and null.
    options = described.get("anyOf", [described])
    plain = next((each for each in options if each.get("type") != "null"), described)
    default = described.get("default")
    kind = _kind(plain)
    return Field(
        name=name,
        kind=kind,
        help=" ".join(described.get("description", "").replace("`", "").split()),
        default=_written(kind, default),
        choices=("yes", "no") if kind == "flag" else tuple(plain.get("enum", ())),
        minimum=plain.get("minimum", plain.get("exclusiveMinimum")),
        maximum=plain.get("maximum", plain.get("exclusiveMaximum")),
        required=is_required,
    )


def _kind(plain: Mapping[str, Any]) -> Kind:
    if "enum" in plain:
        return "choice"
    if plain.get("type") == "boolean":
        return "flag"
    if plain.get("type") in {"integer", "number"}:
        return "integer" if plain["type"] == "integer" else "number"
    inner = plain.get("items", {})
    is_sets = inner.get("type") == "array" and inner.get("items", {}).get("type") == "string"
    return "sets" if is_sets else "json"


def _written(kind: Kind, value: Any) -> str:
    if value is None:
        return ""
    if kind == "flag":
        return "yes" if value else "no"
    if kind == "sets":
        return "\n".join(", ".join(names) for names in value)
    return json.dumps(value) if kind == "json" else str(value)


def _read(kind: Kind, text: str) -> Any:
    if kind == "flag":
        return text == "yes"
    if kind == "sets":
        return [[name.strip() for name in line.split(",")] for line in text.splitlines() if line]
    if kind == "json":
        try:
            return load_json(text)
        except ValueError:
            return text
    return text if kind == "choice" else number(text)
