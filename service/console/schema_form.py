"""A schema as a form: a grid with a row for each column, or JSON, and back."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from pydantic import TypeAdapter

from scrim.spec.rules import Rule, Rules, rule_in_words
from service.console.forms import Form, given, load_json, number, parsed_json, place_of
from service.console.schema_rows import (
    TABLES,
    TYPES,
    ColumnRow,
    column_of,
    missing_of,
    row_from,
    row_of,
    shown_missing,
    shown_text,
)
from service.data.errors import ProblemDocument

FIRST_ROWS = 3
"""Empty rows of a new form."""
MOST_ROWS = 500
"""A form with more rows is too slow to use; a schema in JSON may be longer."""
_LABELS = {'"lower"': '"from"', '"upper"': '"to"'}
"""Fields of the API that have another name in the form's rows."""
_RULES: TypeAdapter[list[Rule]] = TypeAdapter(Rules)
_SHOWN_FIELDS = {"columns", "groups", "individuals", "max_group_size", "missing"}


@dataclass(frozen=True)
class Linking:
    """The link between two tables, as submitted."""

    group_key: str = ""
    individual_key: str = ""
    order: str = ""
    max_group_size: str = ""


@dataclass(frozen=True)
class Draft:
    """A schema that is being written: its columns and, if it has two tables, how they are linked."""

    rows: Sequence[ColumnRow] = (ColumnRow(),) * FIRST_ROWS
    linking: Linking | None = None
    missing: str = ""
    """Spellings of missing values of all columns."""
    rest: str = ""
    """Fields of the schema that the form does not show, as JSON."""

    def places(self) -> list[str | None]:
        """The path of each row in the API's models; empty rows are not part of the schema."""
        counts = dict.fromkeys(TABLES, 0)
        found: list[str | None] = []
        for row in self.rows:
            table = "groups" if self.linking is None else row.table
            start = "flat" if self.linking is None else f"two_level.{table}"
            found.append(None if row.is_empty else f"{start}.columns.{counts[table]}")
            counts[table] += not row.is_empty
        return found


def draft_of(form: Form) -> Draft:
    """Read the draft from a form; a new form has some empty rows."""
    linking = None
    if form.text("levels") == "two":
        linking = Linking(*(form.text(each.name) for each in fields(Linking)))
    numbers = form.numbered("c")[:MOST_ROWS]
    rows = [row_of(form, f"c{number}.") for number in numbers]
    return Draft(rows or Draft().rows, linking, form.text("missing"), form.text("schema_rest"))


def changed(draft: Draft, action: str) -> Draft:
    """Return the draft after a button added or removed a row."""
    verb, _, place = action.partition(":")
    rows = list(draft.rows)
    if verb == "add":
        # Rows are listed one table after the other.
        last = rows[-1].table if rows else TABLES[0]
        rows = [*rows, ColumnRow(table=last)][:MOST_ROWS]
    elif verb == "remove":
        removed = place_of(place)
        rows = [row for number, row in enumerate(rows) if number != removed] or [ColumnRow()]
    return replace(draft, rows=rows)


def schema_of(form: Form) -> dict[str, Any]:
    """Return the submitted schema: from the rows, or from the JSON text box."""
    if form.text("mode") == "json":
        schema = parsed_json(form.text("schema_json"), loc=["schema"])
        return schema if isinstance(schema, dict) else {"columns": schema}
    return declared(draft_of(form))


def declared(draft: Draft) -> dict[str, Any]:
    """Convert a draft to the schema that the API expects."""
    shared = _rest_of(draft) | given(missing=missing_of(draft.missing))
    if draft.linking is None:
        return shared | {"columns": [column_of(row) for row in draft.rows if not row.is_empty]}
    groups, individuals = (
        [column_of(row) for row in draft.rows if not row.is_empty and row.table == table]
        for table in TABLES
    )
    link = draft.linking
    return shared | {
        "groups": {**given(key=link.group_key), "columns": groups},
        "individuals": {
            **given(group_key=link.individual_key, order=link.order),
            "columns": individuals,
        },
        **given(max_group_size=link.max_group_size and number(link.max_group_size)),
    }


def with_labels(problem: ProblemDocument) -> ProblemDocument:
    """The problem, with the field names that the form's rows use."""

    def translated(text: str) -> str:
        for field, label in _LABELS.items():
            text = text.replace(field, label)
        return text

    errors = [
        each.model_copy(update={"message": translated(each.message)}) for each in problem.errors
    ]
    return problem.model_copy(update={"detail": translated(problem.detail), "errors": errors})


def draft_from(schema: Mapping[str, Any]) -> Draft | None:
    """A schema as rows; None if rows cannot hold it."""
    missing = shown_missing(schema.get("missing"))
    hidden = {name: value for name, value in schema.items() if name not in _SHOWN_FIELDS}
    if "missing" in schema and missing_of(missing) != schema["missing"]:
        hidden["missing"] = schema["missing"]
    rest = json.dumps(hidden, ensure_ascii=False) if hidden else ""
    if "columns" in schema:
        rows = _rows_from(schema["columns"], TABLES[0])
        return None if rows is None else Draft(rows or Draft().rows, None, missing, rest)
    tables = [schema.get(table) for table in TABLES]
    groups, individuals = (table if isinstance(table, dict) else {} for table in tables)
    of_groups = _rows_from(groups.get("columns"), "groups")
    of_individuals = _rows_from(individuals.get("columns"), "individuals")
    if of_groups is None or of_individuals is None:
        return None
    linking = Linking(
        group_key=shown_text(groups.get("key")),
        individual_key=shown_text(individuals.get("group_key")),
        order=shown_text(individuals.get("order")),
        max_group_size=shown_text(schema.get("max_group_size")),
    )
    return Draft([*of_groups, *of_individuals] or Draft().rows, linking, missing, rest)


def written(schema: Mapping[str, Any]) -> str:
    """Format a schema as editable JSON: one line per column and rule."""
    lists = {name: each for name, each in schema.items() if each or name != "rules"}
    if not set(lists) <= {"columns", "rules"} or not all(
        isinstance(e, list) for e in lists.values()
    ):
        return json.dumps(lists, indent=2, ensure_ascii=False)
    parts = []
    for name, items in lists.items():
        lines = [json.dumps(item, ensure_ascii=False) for item in items]
        parts.append(f'"{name}": [\n  ' + ",\n  ".join(lines) + "\n]")
    return "{" + ", ".join(parts) + "}"


def tables_in(schema: Mapping[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    """The columns of each table of a schema, under a title where there are two."""
    if "columns" in schema:
        return [("", schema["columns"])]
    return [(name.capitalize(), schema[name]["columns"]) for name in TABLES]


def rules_in(schema: Mapping[str, Any]) -> list[str]:
    """The rules of a declared schema in words."""
    return [rule_in_words(rule) for rule in _RULES.validate_python(schema.get("rules", []))]


def _rest_of(draft: Draft) -> dict[str, Any]:
    try:
        content = load_json(draft.rest) if draft.rest else {}
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _rows_from(columns: object, table: str) -> list[ColumnRow] | None:
    if not isinstance(columns, list) or len(columns) > MOST_ROWS:
        return None
    if not all(isinstance(each, dict) and each.get("type") in TYPES for each in columns):
        return None
    return [row_from(column, table) for column in columns]
