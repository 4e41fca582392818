"""What was pasted into the schema form: a header, a code book, or a schema."""

import csv
from collections.abc import Mapping
from typing import Any

from scrim.importers import Imported, from_csvw_eo, from_ddi, from_mbi_domain, from_smartnoise
from scrim.spec.errors import SpecError
from scrim.spec.skeleton import skeleton_of
from service.console.forms import parsed_json
from service.data.errors import Invalid

_CSVW = ("tableSchema", "tables", "@context")
_DELIMITERS = ",;\t|"


def schema_in(text: str) -> dict[str, Any]:
    """The schema that a pasted text declares; a header makes one whose fields are still empty.

    Of lines of a table only the first is used: rows are never a source of values or bounds.
    """
    text = text.strip().removeprefix("\ufeff")
    try:
        if text.startswith("<"):
            return _plain(from_ddi(text))
        if text.startswith(("{", "[")):
            return _of_json(parsed_json(text, loc=["pasted"]))
        return skeleton_of(_header(text))
    except SpecError as error:
        raise Invalid(f"this cannot be used as a schema: {error}") from None


def _of_json(content: Any) -> dict[str, Any]:
    if isinstance(content, list):
        return {"columns": content}
    if not isinstance(content, dict):
        raise Invalid("paste an object or a list")
    # As `scrim schema propose --json` and the service print it.
    inner = content.get("schema")
    if isinstance(inner, dict) and {"columns", "groups"} & inner.keys():
        return inner
    if {"groups", "individuals"} & content.keys() or _is_ours(content.get("columns")):
        return content
    if any(term in content for term in _CSVW):
        return _plain(from_csvw_eo(content))
    if content and all(isinstance(size, int) for size in content.values()):
        return from_mbi_domain(content).model_dump(mode="json", exclude_none=True)
    return _plain(from_smartnoise(content))


def _is_ours(columns: Any) -> bool:
    """Whether these are columns of ours: a list of objects with a type."""
    return isinstance(columns, list) and all(isinstance(each, Mapping) for each in columns)


def _header(text: str) -> list[str]:
    first = next(iter(text.splitlines()), "")
    delimiter = max(_DELIMITERS, key=first.count)
    return next(csv.reader([first], delimiter=delimiter), [])


def _plain(imported: Imported) -> dict[str, Any]:
    return imported.schema.model_dump(mode="json", exclude_none=True)
