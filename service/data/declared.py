"""The declared tables of a stored dataset."""

from typing import Literal

from pydantic import TypeAdapter

from scrim.spec.columns import STORED
from scrim.spec.schema import Schema
from scrim.spec.two_level import DeclaredSchema, TwoLevelSchema, shape_of
from service.data.models import DatasetRow

TableName = Literal["rows", "groups", "individuals"]

_SCHEMA: TypeAdapter[Schema | TwoLevelSchema] = TypeAdapter(DeclaredSchema)


def schema_of(dataset: DatasetRow) -> Schema | TwoLevelSchema:
    """The declared schema of a dataset. It was validated when it was declared, and never changes."""
    return _SCHEMA.validate_python(dataset.declared_schema, context=STORED)


def tables_of(dataset: DatasetRow) -> tuple[TableName, ...]:
    """The tables that must be uploaded for a dataset."""
    return ("rows",) if shape_of(dataset.declared_schema) == "flat" else ("groups", "individuals")
