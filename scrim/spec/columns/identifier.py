"""Columns that identify people or groups."""

from typing import Literal

from scrim.spec.base import Name, Spec


class IdentifierColumn(Spec):
    """A column that identifies people or groups. It is never released."""

    name: Name
    """The column's name in the uploaded file."""
    type: Literal["identifier"]
    """Always `identifier`."""
