"""Readable messages about invalid input. They use the author's names and never repeat a value.

Pydantic's `columns › 0 › integer: Value error, ...` becomes `Age: "lower" must not be larger than
"upper"`: a column is shown by its name, and the tags of pydantic's unions are left out.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

_LONGEST_NAME = 200
"""Longest name that a message quotes: that of a column (scrim/spec/base.py::Name)."""
_TEXTS = {
    "bool_type": "must be true or false",
    "date_from_datetime_parsing": "must be a date",
    "datetime_from_date_parsing": "must be a date and time",
    "datetime_parsing": "must be a date and time",
    "dict_type": "must be an object",
    "finite_number": "must be a finite number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "list_type": "must be a list",
    "missing": "is required",
    "model_attributes_type": "must be an object",
    "model_type": "must be an object",
    "string_pattern_mismatch": "contains characters that are not allowed",
    "string_type": "must be text",
    "uuid_parsing": "must be a UUID",
    "uuid_type": "must be a UUID",
}
"""Messages by type of fault. Pydantic's own messages for some types repeat the input."""
_WORDINGS = (
    (re.compile(r"^\w+ should "), "must "),
    (re.compile(r"greater than or equal to"), "at least"),
    (re.compile(r"less than or equal to"), "at most"),
    (re.compile(r" after validation.*$"), ""),
)
"""Replacements in pydantic's messages for the other types."""


def describe(fault: Mapping[str, Any], content: Any, *, whole: str = "the document") -> str:
    """Describe one fault that pydantic found in `content` (JSON); `whole` names the content."""
    kind, text = str(fault["type"]), str(fault["msg"])
    if kind == "json_invalid":
        return f"{whole} must be valid JSON"
    things, path = _place(fault["loc"], content, is_missing=kind == "missing")
    if kind == "extra_forbidden":
        field = f' "{path[-1]}"' if _is_name(path[-1]) else ""
        return _about([*things, *path[:-1]], f"unknown field{field}; remove it or check its name")
    if kind == "value_error":
        return _about([*things, *path], text.removeprefix("Value error, "))
    if kind.startswith("unknown_"):
        # Messages of unions (scrim/spec/base.py) already name the field.
        return _about([*things, *path], text)
    for pattern, wording in _WORDINGS:
        text = pattern.sub(wording, text)
    if path:
        return _about(things, f'"{".".join(path)}" {_TEXTS.get(kind, text)}')
    return f"{', '.join(things) or whole} {_TEXTS.get(kind, text)}"


def _about(things: Sequence[str], text: str) -> str:
    return f"{', '.join(things)}: {text}" if things else text


def _place(
    loc: Sequence[str | int], content: Any, *, is_missing: bool
) -> tuple[list[str], list[str]]:
    """The innermost named object with the items in it, and the fields from there to the fault.

    A part of `loc` that is not in the content is a tag of a union, not a field.
    """
    things: list[str] = []
    path: list[str] = []
    for number, part in enumerate(loc):
        if isinstance(part, int):
            is_there = isinstance(content, list | tuple) and part < len(content)
            content = content[part] if is_there else None
            name = content.get("name") if isinstance(content, Mapping) else None
            if _is_name(name):
                things = [name]
            else:
                things.append(f"{path[-1]} item {part + 1}" if path else f"item {part + 1}")
            path = []
        elif isinstance(content, Mapping) and part in content:
            path.append(part)
            content = content[part]
        elif is_missing and number == len(loc) - 1:
            path.append(part)
    return things, path


def _is_name(name: Any) -> TypeGuard[str]:
    return isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME and name.isprintable()
