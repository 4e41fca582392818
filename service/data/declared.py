"""The declared tables of a stored dataset."""

import json
from typing import Any, Literal

from pydantic import TypeAdapter

from scrim.spec.columns import STORED
from scrim.spec.errors import SpecError
from scrim.spec.schema import Schema
from scrim.spec.two_level import DeclaredSchema, TwoLevelSchema, shape_of
from service.data.models import DatasetRow, SavedSchemaRow

TableName = Literal["rows", "groups", "individuals"]

_SCHEMA: TypeAdapter[Schema | TwoLevelSchema] = TypeAdapter(DeclaredSchema)


def schema_of(declared: DatasetRow | SavedSchemaRow) -> Schema | TwoLevelSchema:
    """The schema of a dataset, or a saved one. It was validated when it was stored, and never changes."""
    return _SCHEMA.validate_python(declared.declared_schema, context=STORED)


def content_of(schema: Schema | TwoLevelSchema) -> dict[str, Any]:
    """A schema as it is stored."""
    content = schema.model_dump(mode="json", exclude_none=True)
    # Postgres cannot store this character in text.
    if r"\u0000" in json.dumps(content):
        raise SpecError("the schema contains the character U+0000; declare values without it")
    return content


def tables_of(dataset: DatasetRow) -> tuple[TableName, ...]:
    """The tables that must be uploaded for a dataset."""
    return ("rows",) if shape_of(dataset.declared_schema) == "flat" else ("groups", "individuals")
