"""Bodies and answers about saved schemas."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from scrim.spec.base import Name, Spec
from scrim.spec.two_level import DeclaredSchema
from service.data.views import View

SCHEMA_EXAMPLE = {
    "columns": [
        {"name": "sex", "type": "categorical", "values": ["F", "M"]},
        {"name": "age", "type": "integer", "lower": 0, "upper": 99, "bins": {"width": 10}},
    ]
}


class NewSavedSchema(Spec):
    """A schema to save. A name that is in use gets its next version."""

    name: Name
    """What curators call it."""
    declared_schema: Annotated[DeclaredSchema, Field(alias="schema", examples=[SCHEMA_EXAMPLE])]
    """The columns; or groups and individuals, for two-level data."""


class SavedSchemaSummary(View):
    """A saved schema, as lists show it."""

    id: UUID
    """The id of this version, which datasets refer to."""
    name: str
    """What curators call it."""
    version: int
    """1 for the first schema of this name, 2 for the next. A version never changes."""
    created_at: datetime
    """When it was saved."""


class SavedSchemaView(SavedSchemaSummary):
    """A saved schema with its columns."""

    declared_schema: Annotated[dict[str, Any], Field(alias="schema", examples=[SCHEMA_EXAMPLE])]
    """The schema, as it was saved."""
