"""A column of a schema as a row of the form's grid, and back, without losing what the grid does not show."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from service.console.forms import Form, given, load_json, number

TYPES = {
    "categorical": "categories",
    "ordinal": "ordered categories",
    "boolean": "true or false",
    "integer": "whole number",
    "real": "real number",
    "date": "date",
    "datetime": "date and time",
    "code": "codes",
    "identifier": "identifier",
}
"""The types of columns, as the form names them."""
TABLES = ("groups", "individuals")
BINS = ("none", "adaptive", "width", "count", "edges")
LISTS = ("categorical", "ordinal", "code")
TIMES = ("date", "datetime")
NUMBERS = ("integer", "real")
RESOLUTIONS = ("year", "quarter", "month", "week", "day", "hour", "minute")
EXACT_WHOLE = 2**53
"""Whole numbers up to this are shown without a decimal point."""
_KIND_MARK = " = "


@dataclass(frozen=True)
class ColumnRow:
    """A column as submitted: every value is text."""

    name: str = ""
    table: str = "groups"
    """The table it belongs to, if there are two tables."""
    type: str = "categorical"
    values: str = ""
    other: str = ""
    true: str = ""
    false: str = ""
    levels: str = ""
    lower: str = ""
    upper: str = ""
    format: str = ""
    resolution: str = ""
    bins: str = "none"
    bins_value: str = ""
    decimals: str = ""
    missing: str = ""
    nullable: bool = True
    rest: str = ""
    """Fields that the grid does not show, as a JSON object with the type that they belong to."""

    @property
    def is_empty(self) -> bool:
        """Whether the row is blank."""
        return not (self.name or self.values or self.lower or self.upper)

    @property
    def unshown(self) -> list[str]:
        """The fields that the grid does not show for this type; the form keeps them."""
        shown = _SHOWN[self.type]
        return [name for name in (*_TEXT_FIELDS, "bins") if name not in shown and name != "name"]

    @property
    def hidden(self) -> dict[str, Any]:
        """The fields that the grid does not show, if they belong to the row's type."""
        try:
            content = load_json(self.rest) if self.rest else {}
        except ValueError:
            return {}
        if not isinstance(content, dict) or content.pop("type", None) != self.type:
            return {}
        return content


def row_of(form: Form, prefix: str) -> ColumnRow:
    """Read a row from a form."""

    def text(name: str, default: str = "") -> str:
        return form.text(prefix + name, default)

    texts = {name: text(name) for name in _TEXT_FIELDS}
    return ColumnRow(
        **texts,
        table=text("table") if text("table") in TABLES else TABLES[0],
        type=text("type") if text("type") in TYPES else "categorical",
        bins=text("bins") if text("bins") in BINS else "none",
        nullable=form.has(prefix + "nullable"),
    )


def column_of(row: ColumnRow) -> dict[str, Any]:
    """Convert a row to the column that the API expects."""
    column: dict[str, Any] = {"name": row.name, "type": row.type}
    if row.type == "identifier":
        return column
    hidden = row.hidden
    column |= hidden | _own_fields(row)
    if row.type in LISTS and not {"values", "code_list"} & column.keys():
        column["values"] = []
    return column | {"nullable": row.nullable}


def row_from(column: Mapping[str, Any], table: str) -> ColumnRow:
    """Show a column as a row; what the grid cannot show is kept in `rest`."""
    row = replace(_shown(column), table=table)
    read = column_of(row)
    lost = {name: value for name, value in column.items() if read.get(name) != value}
    if not lost:
        return row
    # What is kept apart must not be read from the row as well.
    blank: dict[str, Any] = {name: "" for name in lost if name in _TEXT_FIELDS}
    if "bins" in lost:
        blank |= {"bins": "none", "bins_value": ""}
    rest = json.dumps({"type": row.type, **lost}, ensure_ascii=False)
    return replace(row, **blank, rest=rest)


def missing_of(text: str) -> list[str] | dict[str, str]:
    """Spellings of missing values, separated by commas; `NA = refused` names the kind of one."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not any(_KIND_MARK in part for part in parts):
        return parts
    pairs = (part.partition(_KIND_MARK) for part in parts)
    return {spelling.strip(): kind.strip() or "missing" for spelling, _, kind in pairs}


def shown_missing(missing: Any) -> str:
    """The same as text; empty if the text could not be read back."""
    if isinstance(missing, list):
        text = ", ".join(map(str, missing))
    elif isinstance(missing, dict):
        text = ", ".join(f"{spelling}{_KIND_MARK}{kind}" for spelling, kind in missing.items())
    else:
        return ""
    return text if missing_of(text) == missing else ""


def shown_text(value: Any) -> str:
    """A value as text; nothing for none."""
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT_WHOLE:
        return str(int(value))
    return "" if value is None else str(value)


def _own_fields(row: ColumnRow) -> dict[str, Any]:
    """The fields that the grid shows for this type, without empty ones."""
    own: dict[str, Any] = given(missing=missing_of(row.missing))
    if row.type in LISTS:
        values = [line.strip() for line in row.values.splitlines() if line.strip()]
        own |= given(values=values, other=row.other)
    if row.type == "code":
        own |= given(levels=[number(each) for each in row.levels.replace(",", " ").split()])
    elif row.type == "boolean":
        own |= given(true=_spellings(row.true), false=_spellings(row.false))
    elif row.type in NUMBERS:
        own |= given(lower=number(row.lower), upper=number(row.upper), bins=_bins_of(row))
    elif row.type in TIMES:
        own |= given(lower=row.lower, upper=row.upper, bins=_bins_of(row))
        own |= given(format=row.format, resolution=row.resolution)
    if row.type == "real":
        own |= given(decimals=number(row.decimals))
    return own


def _shown(column: Mapping[str, Any]) -> ColumnRow:
    bins = column.get("bins")
    kind, value = next(iter(bins.items())) if isinstance(bins, dict) and bins else ("none", "")
    return ColumnRow(
        name=shown_text(column.get("name")),
        type=column["type"],
        values=_listed(column.get("values"), "\n"),
        other=shown_text(column.get("other")),
        true=_listed(column.get("true"), ", "),
        false=_listed(column.get("false"), ", "),
        levels=_listed(column.get("levels"), " "),
        lower=shown_text(column.get("lower")),
        upper=shown_text(column.get("upper")),
        format=shown_text(column.get("format")),
        resolution=shown_text(column.get("resolution")),
        bins=kind if kind in BINS else "none",
        bins_value=_listed(value, " ") if isinstance(value, list) else shown_text(value),
        decimals=shown_text(column.get("decimals")),
        missing=shown_missing(column.get("missing")),
        nullable=column.get("nullable", True) is not False,
    )


def _listed(values: Any, separator: str) -> str:
    return separator.join(map(shown_text, values)) if isinstance(values, list) else ""


def _spellings(text: str) -> Sequence[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _bins_of(row: ColumnRow) -> dict[str, Any] | None:
    if row.bins == "none":
        return None
    if row.bins == "edges":
        edges = row.bins_value.replace(",", " ").split()
        return {"edges": edges if row.type in TIMES else [number(edge) for edge in edges]}
    return {row.bins: number(row.bins_value)}


_SHOWN: dict[str, tuple[str, ...]] = {
    "categorical": ("values", "other", "missing"),
    "ordinal": ("values", "other", "missing"),
    "code": ("values", "other", "missing", "levels"),
    "boolean": ("true", "false", "missing"),
    "integer": ("lower", "upper", "bins", "bins_value", "missing"),
    "real": ("lower", "upper", "bins", "bins_value", "decimals", "missing"),
    "date": ("lower", "upper", "bins", "bins_value", "format", "resolution", "missing"),
    "datetime": ("lower", "upper", "bins", "bins_value", "format", "resolution", "missing"),
    "identifier": (),
}
_TEXT_FIELDS = (
    "name",
    "values",
    "other",
    "true",
    "false",
    "levels",
    "lower",
    "upper",
    "format",
    "resolution",
    "bins_value",
    "decimals",
    "missing",
    "rest",
)
