"""Submitted forms, and their conversion to bodies that the API's own models validate."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl
from uuid import uuid4

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter, ValidationError

from service.bodies import MAX_FORM_FIELDS, SMALL
from service.data.errors import FieldProblem, IdempotencyKeyReused, Invalid, ProblemDocument
from service.idempotency import LONGEST_KEY

Body = TypeVar("Body")
# Without leading zeros, so that no two names mean the same position.
_PLACE = re.compile(r"0|[1-9][0-9]{0,5}")


class Form:
    """The fields of a form; a name may have several values."""

    def __init__(self, pairs: Sequence[tuple[str, str]] = ()) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name, []).append(value)

    def text(self, name: str, default: str = "") -> str:
        """A field's text, stripped of surrounding spaces."""
        return self._values.get(name, [default])[-1].strip()

    def all(self, name: str) -> list[str]:
        """Every value of a field."""
        return self._values.get(name, [])

    def has(self, name: str) -> bool:
        """Whether the field was sent; browsers send a checkbox only if it is ticked."""
        return name in self._values

    def numbered(self, prefix: str) -> list[int]:
        """The numbers n for which there are fields `prefix`n.something, in order."""
        starts = (name.partition(".")[0] for name in self._values if "." in name)
        found = {each.removeprefix(prefix) for each in starts if each.startswith(prefix)}
        return sorted(place for each in found if (place := place_of(each)) is not None)

    def replacing(self, prefix: str, pairs: Sequence[tuple[str, str]]) -> "Form":
        """The form with these fields instead of its own numbered ones."""
        own = {f"{prefix}{number}" for number in self.numbered(prefix)}
        kept = [pair for pair in self.pairs() if pair[0].partition(".")[0] not in own]
        return Form([*kept, *pairs])

    def pairs(self) -> list[tuple[str, str]]:
        """Every field with every value."""
        return [(name, value) for name, values in self._values.items() for value in values]


async def read_form(request: Request) -> Form:
    """The form that a browser sent."""
    content = await request.body()
    if len(content) <= SMALL:
        return _parsed_form(content)
    return await run_in_threadpool(_parsed_form, content)


def _parsed_form(content: bytes) -> Form:
    try:
        pairs = parse_qsl(content.decode(), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS)
    except UnicodeDecodeError:
        raise Invalid("the form cannot be read; send it in UTF-8") from None
    except ValueError:
        raise Invalid(f"a form may have at most {MAX_FORM_FIELDS:,} fields") from None
    if any("\0" in part for pair in pairs for part in pair):
        # Postgres cannot store a NUL character.
        raise Invalid("a field of the form contains a NUL character; remove it")
    return Form(pairs)


def place_of(text: str) -> int | None:
    """Parse the position of a row from a field name or a button; None if it is not a position."""
    return int(text) if _PLACE.fullmatch(text) else None


def number(text: str) -> int | float | str:
    """Parse a number; return other text unchanged, so that the model refuses it."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def given(**fields: Any) -> dict[str, Any]:
    """The fields that are not empty."""
    return {name: value for name, value in fields.items() if value not in ("", None, [], {})}


def load_json(text: str) -> Any:
    """Parse JSON; ValueError if it is invalid, nested too deeply, or contains a lone surrogate."""
    try:
        content = json.loads(text)
        # A lone surrogate is valid JSON, but cannot be stored or shown as text.
        json.dumps(content, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    return content


def parsed_json(text: str, *, loc: Sequence[str]) -> Any:
    """Parse the content of a text box with JSON."""
    try:
        return load_json(text)
    except ValueError:
        message = "the JSON cannot be read; check its quotes, commas and brackets"
        raise Invalid(message, errors=[FieldProblem(loc=["body", *loc], message=message)]) from None


def validated(model: TypeAdapter[Body], body: Mapping[str, Any]) -> Body:
    """Validate the body with the API's own model; RequestValidationError, as in the API, if invalid."""
    try:
        return model.validate_python(body)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        raise RequestValidationError(
            [{**each, "loc": ("body", *each["loc"])} for each in found], body=body
        ) from None


def repeat_key(form: Form | None = None, problem: ProblemDocument | None = None) -> str:
    """The idempotency key of a form: a second click repeats the request and creates nothing new.

    A form whose key was used with other content, for example after the browser's back button, gets a new key.
    """
    is_used = problem is not None and problem.type == f"/problems/{IdempotencyKeyReused.type}"
    known = form.text("repeat_key") if form is not None and not is_used else ""
    return known if 0 < len(known) <= LONGEST_KEY else uuid4().hex
