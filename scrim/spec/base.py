"""Base classes of the public contract: strict, frozen models that refuse unknown fields."""

from dataclasses import dataclass
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema
from pydantic_core.core_schema import TaggedUnionSchema


class Spec(BaseModel):
    """A value of the public contract: immutable, no coercion between types, no unknown fields."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        validate_default=True,
        # A message about invalid input must never repeat the input.
        hide_input_in_errors=True,
    )


@dataclass(frozen=True)
class Discriminated:
    """Marks a union in which one field, such as `name` or `type`, determines the member."""

    field: str
    advice: str = ""
    """What to do instead, for the message."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Make a tagged union whose message lists the known values and does not repeat the input."""
        tagged = Annotated[source, Field(discriminator=self.field)]
        union = cast(TaggedUnionSchema, handler(tagged))
        known = ", ".join(map(str, union["choices"]))
        union["custom_error_type"] = f"unknown_{self.field}"
        union["custom_error_message"] = f'"{self.field}" must be one of: {known}{self.advice}'
        return union


Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]+$")]
"""A name of a column, population or dataset: printable, at most 200 characters."""

Seed = Annotated[int, Field(ge=0, lt=2**53)]
"""Seed of a public random choice. It never influences privacy noise."""
