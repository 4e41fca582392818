"""Types of arguments: models of scrim.spec, or the same as plain mappings and lists."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from scrim.errors import UnusableInput
from scrim.spec.release import ReleaseRequest
from scrim.spec.schema import Schema
from scrim.spec.two_level import TwoLevelSchema
from scrim.spec.workload import WorkloadItem

AnySchema = Schema | TwoLevelSchema | Mapping[str, Any]
"""The declared columns of a table, or of groups and individuals."""
AnyWorkload = Sequence[WorkloadItem | Mapping[str, Any]]
"""The requested queries."""
ReleaseBody = ReleaseRequest | Mapping[str, Any]
"""The body of a release; a mapping may contain models at any depth."""


def plain(value: Any) -> Any:
    """Convert a value to plain JSON types."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


def parse_schema(schema: AnySchema, *, what: str = "the schema") -> Schema | TwoLevelSchema:
    """Parse a schema before anything is sent; two-level if it has groups or individuals."""
    content = plain(schema)
    model = Schema if {"groups", "individuals"}.isdisjoint(content) else TwoLevelSchema
    try:
        return model.model_validate_json(json.dumps(content))
    except ValidationError as error:
        raise UnusableInput.of(what, error, content) from None
