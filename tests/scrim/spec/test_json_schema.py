"""The JSON Schema that clients and forms read: described, bounded, named."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from scrim.spec.catalogue import CatalogueEntry
from scrim.spec.mechanism import CATALOGUE
from scrim.spec.population import PopulationSpec
from scrim.spec.release import ReleaseRequest
from scrim.spec.schema import Schema
from scrim.spec.two_level import TwoLevelSchema
from tests.scrim.column_types import TYPES

MODELS: list[type[BaseModel]] = [
    ReleaseRequest,
    Schema,
    TwoLevelSchema,
    PopulationSpec,
    CatalogueEntry,
]

UNBOUNDED = {
    ("RealColumn", "lower"),
    ("RealColumn", "upper"),
    ("RealColumn", "special"),
    ("Bins", "edges"),
    ("Bins", "width"),
    ("Within", "min"),
    ("Within", "max"),
    ("BinShape", "edges"),
    ("BinShape", "weights"),
}
"""Numbers that may be anything finite (a width: anything above 0; bounds of a rule: those of its column)."""

LOWER, UPPER = {"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}


def objects(model: type[BaseModel]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The model and every model inside it, by title."""
    schema = model.model_json_schema()
    for definition in (schema, *schema.get("$defs", {}).values()):
        yield definition["title"], definition


FIELDS = {
    (title, name): field
    for model in MODELS
    for title, definition in objects(model)
    for name, field in definition["properties"].items()
}


def leaves(field: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The schemas of single values inside a field: alternatives, and the items of lists."""
    inner = [*field.get("anyOf", []), *field.get("oneOf", [])]
    if "items" in field:
        inner.append(field["items"])
    if not inner:
        yield field
    for schema in inner:
        yield from leaves(schema)


def test_every_field_is_described() -> None:
    for place, field in FIELDS.items():
        assert field.get("description", "").endswith("."), place


def test_every_number_is_bounded() -> None:
    for place, field in FIELDS.items():
        for leaf in leaves(field):
            if leaf.get("type") in ("integer", "number") and place not in UNBOUNDED:
                assert LOWER & set(leaf) and UPPER & set(leaf), place


def test_titles_are_words() -> None:
    for (title, name), field in FIELDS.items():
        assert re.fullmatch(r"([A-Z][a-z]+)+", title)
        assert re.fullmatch(r"[A-Z][A-Za-z]*( [A-Z][a-z]*)*", field.get("title", "X")), name


@pytest.mark.parametrize("model", MODELS)
def test_every_object_is_described_and_closed(model: type[BaseModel]) -> None:
    for title, definition in objects(model):
        assert definition["description"].rstrip().endswith("."), title
        assert definition["additionalProperties"] is False, title


def test_mechanisms_are_told_apart_by_name() -> None:
    mechanism = ReleaseRequest.model_json_schema()["properties"]["mechanism"]
    assert mechanism["discriminator"]["propertyName"] == "name"
    names = {mechanism_class.catalogue_name() for mechanism_class in CATALOGUE}
    assert set(mechanism["discriminator"]["mapping"]) == names
    assert len(mechanism["oneOf"]) == len(names)


def test_columns_are_told_apart_by_type() -> None:
    column = Schema.model_json_schema()["properties"]["columns"]["items"]
    assert column["discriminator"]["propertyName"] == "type"
    assert set(column["discriminator"]["mapping"]) == set(TYPES)


def test_workload_items_are_told_apart_by_type() -> None:
    request = ReleaseRequest.model_json_schema()
    items = request["properties"]["workload"]["items"]
    assert items["discriminator"]["propertyName"] == "type"
    assert len(items["oneOf"]) == 7
    item = request["$defs"]["Marginals"]
    assert item["properties"]["type"]["const"] == "marginals"
    assert item["required"] == ["type"]
