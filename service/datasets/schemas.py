"""Bodies and answers about datasets. No answer tells anything about the rows."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Discriminator, Field, Tag, TypeAdapter

from scrim.spec.base import Name, Spec, ToldApartBy
from scrim.spec.schema import STORED, Columns, IdentifierColumn, Schema
from scrim.spec.two_level import TwoLevelSchema
from service.models import Dataset
from service.views import View

TableName = Literal["rows", "groups", "individuals"]
State = Literal["awaiting_content", "ingesting", "ready", "rejected", "deleted"]


def _shape(value: Any) -> str:
    if isinstance(value, dict):
        return "two_level" if "groups" in value or "individuals" in value else "flat"
    return "two_level" if isinstance(value, TwoLevelSchema) else "flat"


DeclaredSchema = Annotated[
    Annotated[Schema, Tag("flat")] | Annotated[TwoLevelSchema, Tag("two_level")],
    Discriminator(_shape),
]
_SCHEMA: TypeAdapter[Schema | TwoLevelSchema] = TypeAdapter(DeclaredSchema)

_EXAMPLE = {
    "columns": [
        {"name": "sex", "type": "categorical", "values": ["F", "M"]},
        {"name": "age", "type": "integer", "lower": 0, "upper": 99, "bins": {"width": 10}},
    ]
}


class _NewDataset(Spec):
    name: Name
    """What the curator calls it."""
    declared_schema: Annotated[DeclaredSchema, Field(alias="schema", examples=[_EXAMPLE])]
    """The columns, declared and never inferred; or groups and individuals, for two-level data."""


class NewPrivateDataset(_NewDataset):
    """A dataset about a population. Whatever is released from it is paid from its budget."""

    visibility: Literal["private"]
    """Always `private`."""
    population_id: Annotated[UUID, Field(strict=False)]
    """The people it is about."""


class NewPublicDataset(_NewDataset):
    """A dataset that is public already, to assist mechanisms that can use one."""

    visibility: Literal["public"]
    """Always `public`."""
    provenance: Annotated[str, Field(min_length=1, max_length=2000, pattern=r"^[^\x00]+$")]
    """Where it was published."""
    disjoint_from_population: Literal[True]
    """The statement that none of the protected people is in it."""


NewDataset = Annotated[NewPrivateDataset | NewPublicDataset, ToldApartBy("visibility")]


class DatasetSummary(View):
    """A dataset, as lists show it."""

    id: UUID
    """What releases refer to."""
    name: str
    """What the curator calls it."""
    visibility: Literal["private", "public"]
    """Whether it is about protected people, or public already."""
    population_id: UUID | None
    """The people it is about; null for a public dataset."""
    provenance: str | None
    """Where a public dataset was published."""
    disjoint_from_population: bool | None
    """The statement that none of the protected people is in a public dataset."""
    state: State
    """Releases need one that is `ready`."""
    reason: str | None
    """Why it was rejected: something about the file's structure, never a value in it. Only the key
    that declared the dataset sees it."""
    created_at: datetime
    """When it was declared."""


class DatasetView(DatasetSummary):
    """A dataset with its declared schema."""

    declared_schema: Annotated[dict[str, Any], Field(alias="schema", examples=[_EXAMPLE])]
    """The schema, as it was declared."""
    missing_tables: list[TableName]
    """What must still be uploaded."""


def schema_of(dataset: Dataset) -> Schema | TwoLevelSchema:
    """The declared schema of a dataset. It was checked when it was declared, and never changes."""
    return _SCHEMA.validate_python(dataset.declared_schema, context=STORED)


def owners_in(schema: Schema | TwoLevelSchema) -> list[str]:
    """The columns that may tell whose a row is; among individuals, beside the key of their group."""
    if isinstance(schema, Schema):
        return _identifiers(schema.columns)
    own = schema.individuals
    return [name for name in _identifiers(own.columns) if name != own.group_key]


def _identifiers(columns: Columns) -> list[str]:
    return [column.name for column in columns if isinstance(column, IdentifierColumn)]


def tables_of(dataset: Dataset) -> tuple[TableName, ...]:
    """The tables that must be uploaded for a dataset."""
    return ("rows",) if _shape(dataset.declared_schema) == "flat" else ("groups", "individuals")
