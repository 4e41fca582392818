"""Shared code of all importers: read untrusted fields, and declare columns from them."""

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from scrim.spec.errors import SpecError
from scrim.spec.messages import describe
from scrim.spec.population import Protection
from scrim.spec.schema import Schema

Fields = Mapping[str, Any]
Booleans = tuple[str, str]


@dataclass(frozen=True)
class Imported:
    """A schema, and the protection that its source declares."""

    schema: Schema
    protection: Protection | None
    """The privacy unit for the population; None if the source does not declare it."""


def declare(columns: Sequence[Fields]) -> Schema:
    """Build a schema of those columns, or raise an error that names the column."""
    try:
        return Schema.model_validate({"columns": list(columns)})
    except ValidationError as refused:
        problem = refused.errors(include_input=False, include_url=False)[0]
    raise SpecError(describe(problem, {"columns": columns}))


def protect_people(*, max_rows: int) -> Protection:
    """Protect people who own at most `max_rows` rows each; an identifier column names the owner of a row."""
    try:
        return Protection(unit="person", max_rows_per_person=max_rows)
    except ValidationError as refused:
        problem = refused.errors(include_input=False, include_url=False)[0]
    raise SpecError(describe(problem, {"max_rows_per_person": max_rows}))


def parse_json(document: Fields | str) -> Fields:
    """Return a JSON object, given as text or already parsed."""
    if not isinstance(document, str):
        return read_fields(document, "the document")
    try:
        parsed = json.loads(document, object_pairs_hook=_distinct, parse_constant=_refuse_constant)
        return read_fields(parsed, "the document")
    except SpecError:
        raise
    except (ValueError, RecursionError):
        pass
    raise SpecError("the document is not JSON; check its quotes, commas and brackets")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise SpecError("an object of the document has the same key twice; remove one of them")
    return found


def _refuse_constant(constant: str) -> None:
    raise SpecError(f"{constant} is not a JSON number; write a finite number")


def read_fields(value: Any, what: str) -> Fields:
    """A mapping from text to anything."""
    if not isinstance(value, Mapping):
        raise SpecError(f"{what} must be an object of named fields")
    if not all(isinstance(key, str) for key in value):
        # YAML reads an unquoted `no` as false and an unquoted `2020` as a number.
        raise SpecError(f"{what} has a name that is not text; put it in quotes")
    return value


def read_list(value: Any, what: str) -> list[Any]:
    """A list."""
    if not isinstance(value, list | tuple):
        raise SpecError(f"{what} must be a list")
    return list(value)


def read_flag(fields: Fields, field: str, *, what: str, default: bool) -> bool:
    """A field that is true or false; the default if it is missing."""
    value = fields.get(field)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise SpecError(f"{what}: {field} must be true or false")
    return value


def read_whole(value: Any, what: str) -> int:
    """Read a whole number; a float without a fraction is accepted."""
    number = read_number(value, what)
    if number != math.floor(number):
        raise SpecError(f"{what} must be a whole number")
    return math.floor(number)


def read_number(value: Any, what: str) -> int | float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        raise SpecError(f"{what} must be a number")
    return value


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer too large for a float
        return False


def read_labels(values: Any, *, column: str, booleans: Booleans) -> list[str]:
    """Listed categories as the text of their cells; null means a missing cell and is left out."""
    labels: list[str] = []
    for value in read_list(values, f"column {column!r}: the list of categories"):
        match value:
            case None:
                continue
            case bool():
                labels.append(booleans[value])
            case str():
                labels.append(value)
            case _:
                # A fraction has many spellings, and a category only one.
                labels.append(
                    str(read_whole(value, f"column {column!r}: a category that is no text"))
                )
    return labels


def refuse_unknown(fields: Iterable[str], known: Collection[str], what: str) -> None:
    """Refuse unknown fields, which may change the meaning of the schema."""
    for field in fields:
        if field not in known:
            raise SpecError(
                f"{what}: the field {field!r} is not known; remove it if it adds nothing"
            )
