"""The columns that a public dataset shares with a private one: same name and same kind."""

from scrim.spec.columns import (
    DateColumn,
    DatetimeColumn,
    IdentifierColumn,
    IntegerColumn,
    RealColumn,
)
from scrim.spec.errors import SpecError
from scrim.spec.rules import GroupRule, kept_rules
from scrim.spec.schema import Attribute, Schema


def shared_schema(schema: Schema, public: Schema) -> Schema:
    """Return the private declarations of the shared columns, in the private order.

    Categories, bounds and bins may differ; a column must not be text in one and numbers in the other, nor
    numbers in one and dates in the other.
    """
    found = {column.name: column for column in public.columns}
    shared = [column for column in schema.attributes if column.name in found]
    if not shared:
        raise SpecError(
            "the public dataset shares no column with the private one; give its columns the same names"
        )
    for column in shared:
        other = found[column.name]
        if isinstance(other, IdentifierColumn) or _kind(column) != _kind(other):
            raise SpecError(
                f"column {column.name!r} is {column.type} in the private dataset and {other.type} in "
                "the public one; declare the public dataset again with the same type, or without "
                "the column"
            )
    names = {column.name for column in shared}
    about_rows = [rule for rule in schema.rules if not isinstance(rule, GroupRule)]
    return Schema(columns=[*shared], rules=kept_rules(about_rows, names))


def _kind(column: Attribute) -> str:
    """What the cells are: numbers, times or text."""
    if isinstance(column, IntegerColumn | RealColumn):
        return "numbers"
    return "times" if isinstance(column, DateColumn | DatetimeColumn) else "text"
