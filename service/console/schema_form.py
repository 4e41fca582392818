"""A schema as rows of a form, one for each column, and back."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.console.forms import Form, given, number, parsed_json

TYPES = ("categorical", "integer", "real", "identifier")
BINS = ("none", "width", "count", "edges")
FIRST_ROWS = 3
MOST_ROWS = 500
"""A form with more rows is too slow to use; a schema in JSON may be longer."""


@dataclass(frozen=True)
class ColumnRow:
    """A column as it is filled in: everything is text."""

    name: str = ""
    type: str = "categorical"
    values: str = ""
    other: str = ""
    lower: str = ""
    upper: str = ""
    bins: str = "none"
    bins_value: str = ""
    decimals: str = ""
    nullable: bool = True

    @property
    def is_empty(self) -> bool:
        """Whether nobody has written anything."""
        return not (self.name or self.values or self.lower or self.upper)


def rows_of(form: Form) -> list[ColumnRow]:
    """The rows of a form; a new form has some empty ones."""
    numbers = form.numbered("c")[:MOST_ROWS]
    if not numbers:
        return [ColumnRow()] * FIRST_ROWS
    return [_row(form, f"c{number}.") for number in numbers]


def changed(rows: Sequence[ColumnRow], action: str) -> list[ColumnRow]:
    """The rows after a button that adds or removes one."""
    verb, _, place = action.partition(":")
    if verb == "add":
        return [*rows, ColumnRow()][:MOST_ROWS]
    if verb == "remove" and place.isdecimal():
        return [row for number, row in enumerate(rows) if number != int(place)] or [ColumnRow()]
    return list(rows)


def schema_of(form: Form) -> dict[str, Any]:
    """The schema that was filled in: from the rows, or from the box with JSON."""
    if form.text("mode") == "json":
        schema = parsed_json(form.text("schema_json"), loc=["schema"])
        return schema if isinstance(schema, dict) else {"columns": schema}
    return {"columns": [column_of(row) for row in rows_of(form) if not row.is_empty]}


def column_of(row: ColumnRow) -> dict[str, Any]:
    """A row as the API expects it."""
    column: dict[str, Any] = {"name": row.name, "type": row.type}
    if row.type == "categorical":
        column["values"] = [line.strip() for line in row.values.splitlines() if line.strip()]
        column |= given(other=row.other)
    elif row.type != "identifier":
        column |= given(lower=number(row.lower), upper=number(row.upper), bins=_bins_of(row))
        if row.type == "real":
            column |= given(decimals=number(row.decimals))
    if row.type != "identifier":
        column["nullable"] = row.nullable
    return column


def rows_from(schema: Mapping[str, Any]) -> list[ColumnRow] | None:
    """A schema as rows; None if rows cannot hold it, as groups of individuals."""
    columns = schema.get("columns")
    if not isinstance(columns, list) or len(columns) > MOST_ROWS:
        return None
    rows = []
    for column in columns:
        if not isinstance(column, dict) or column.get("type") not in TYPES:
            return None
        rows.append(_row_from(column))
    return rows


def written(schema: Mapping[str, Any]) -> str:
    """A schema as JSON that people can edit: a line for each column."""
    if set(schema) != {"columns"}:
        return json.dumps(schema, indent=2, ensure_ascii=False)
    lines = [json.dumps(column, ensure_ascii=False) for column in schema["columns"]]
    return '{"columns": [\n  ' + ",\n  ".join(lines) + "\n]}"


def tables_in(schema: Mapping[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    """The columns of each table of a schema, under a title where there are two."""
    if "columns" in schema:
        return [("", schema["columns"])]
    return [(name.capitalize(), schema[name]["columns"]) for name in ("groups", "individuals")]


def _row(form: Form, prefix: str) -> ColumnRow:
    def text(name: str, default: str = "") -> str:
        return form.text(prefix + name, default)

    kind, bins = text("type"), text("bins", "none")
    return ColumnRow(
        name=text("name"),
        type=kind if kind in TYPES else "categorical",
        values=text("values"),
        other=text("other"),
        lower=text("lower"),
        upper=text("upper"),
        bins=bins if bins in BINS else "none",
        bins_value=text("bins_value"),
        decimals=text("decimals"),
        nullable=form.has(prefix + "nullable"),
    )


def _bins_of(row: ColumnRow) -> dict[str, Any] | None:
    if row.bins == "none":
        return None
    if row.bins == "edges":
        edges = row.bins_value.replace(",", " ").split()
        return {"edges": [number(edge) for edge in edges]}
    return {row.bins: number(row.bins_value)}


def _row_from(column: Mapping[str, Any]) -> ColumnRow:
    bins = column.get("bins")
    kind, value = next(iter(bins.items())) if isinstance(bins, dict) and bins else ("none", "")
    values = column.get("values", [])
    return ColumnRow(
        name=str(column.get("name", "")),
        type=column["type"],
        values="\n".join(map(str, values)) if isinstance(values, list) else "",
        other=str(column.get("other", "")),
        lower=_text(column.get("lower")),
        upper=_text(column.get("upper")),
        bins=kind if kind in BINS else "none",
        bins_value=" ".join(map(_text, value)) if isinstance(value, list) else _text(value),
        decimals=_text(column.get("decimals")),
        nullable=column.get("nullable", True) is not False,
    )


def _text(value: Any) -> str:
    return "" if value is None else str(value)
