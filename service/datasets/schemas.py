"""Bodies and answers about datasets. No response reveals anything about the rows."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import Field, model_validator

from scrim.spec.base import Discriminated, Name, Spec
from scrim.spec.two_level import DeclaredSchema
from service.data.declared import TableName
from service.data.views import View
from service.schemas.schemas import SCHEMA_EXAMPLE

State = Literal["awaiting_content", "ingesting", "ready", "rejected", "deleted"]


class _NewDataset(Spec):
    name: Name
    """What the curator calls it."""
    declared_schema: Annotated[
        DeclaredSchema | None, Field(alias="schema", examples=[SCHEMA_EXAMPLE])
    ] = None
    """The columns, declared and never inferred; or groups and individuals, for two-level data."""
    schema_id: Annotated[UUID | None, Field(strict=False)] = None
    """A saved schema, instead of `schema`."""

    @model_validator(mode="after")
    def _has_one_schema(self) -> Self:
        if (self.declared_schema is None) == (self.schema_id is None):
            raise ValueError('give exactly one of "schema" and "schema_id"')
        return self


class NewPrivateDataset(_NewDataset):
    """A dataset about a population. Releases from it are charged to the population's budget."""

    visibility: Literal["private"]
    """Always `private`."""
    population_id: Annotated[UUID, Field(strict=False)]
    """The people it is about."""


class NewPublicDataset(_NewDataset):
    """A dataset that is already public, for mechanisms that can use public data."""

    visibility: Literal["public"]
    """Always `public`."""
    provenance: Annotated[str, Field(min_length=1, max_length=2000, pattern=r"^[^\x00]+$")]
    """Where it was published."""
    disjoint_from_population: Literal[True]
    """The statement that none of the protected people is in it."""


NewDataset = Annotated[NewPrivateDataset | NewPublicDataset, Discriminated("visibility")]


class DatasetSummary(View):
    """A dataset, as lists show it."""

    id: UUID
    """The dataset's id, which releases refer to."""
    name: str
    """What the curator calls it."""
    visibility: Literal["private", "public"]
    """Whether it is about protected people (`private`), or already public (`public`)."""
    population_id: UUID | None
    """The people it is about; null for a public dataset."""
    provenance: str | None
    """Where a public dataset was published."""
    disjoint_from_population: bool | None
    """The statement that none of the protected people is in a public dataset."""
    state: State
    """The state. Releases need a dataset that is `ready`."""
    reason: str | None
    """Why it was rejected: something about the file's structure, never a value in it. Only the key
    that declared the dataset sees it."""
    created_at: datetime
    """When it was declared."""


class DatasetView(DatasetSummary):
    """A dataset with its declared schema."""

    declared_schema: Annotated[dict[str, Any], Field(alias="schema", examples=[SCHEMA_EXAMPLE])]
    """The schema, as it was declared."""
    schema_id: UUID | None
    """The saved schema that it was declared with; null if it was declared with a schema of its own."""
    missing_tables: list[TableName]
    """The tables that must still be uploaded."""
