"""Parts of a schema, which are checked once, when they are declared."""

from typing import Self

from pydantic import ValidationInfo, model_validator

from scrim.spec.base import Spec

MAX_CODES = 100_000
"""Largest number of bins or values of one column."""

STORED = {"stored": True}
"""Validation context for reading back a stored schema, which was checked when it was declared."""


class Declared(Spec):
    """A part of a schema. It is checked when it is declared, and not again when it is read back."""

    @model_validator(mode="after")
    def _checked_once(self, info: ValidationInfo) -> Self:
        if info.context != STORED:
            self.refuse_faults()
        return self

    def refuse_faults(self) -> None:
        """Refuse values that do not fit together."""

    def __copy__(self) -> Self:
        # `model_copy` uses this and changes fields, so cached values computed from them are dropped.
        copied = super().__copy__()
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied
