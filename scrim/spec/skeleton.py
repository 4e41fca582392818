"""A declaration to fill in, from the names in a header alone."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from scrim.spec.errors import SpecError
from scrim.spec.schema import MAX_COLUMNS

_IDENTIFIER_NAME = re.compile(r"(?i:(?:^|[_\W])[a-z]?id$)|[a-z](?:ID|Id)$")
_DATE_NAME = re.compile(r"(?i:(?:^|[_\W])(?:date|day|dob|birthday)$|^date(?:[_\W]|$))|[a-z]Date$")
_NUMBER_NAME = re.compile(
    r"(?i:(?:^|[_\W])(?:age|year|years|count|number|amount|cost|costs|price|income|days|hours)$)"
)


def skeleton_of(names: Sequence[str]) -> dict[str, Any]:
    """Columns of these names, with the fields that must be filled in left empty.

    A name suggests a type at most. Values and bounds cannot be known from a header.
    """
    names = [name.strip() for name in names]
    if not any(names):
        raise SpecError("the header has no names; give one line with the names of the columns")
    if len(names) > MAX_COLUMNS:
        raise SpecError(
            f"the header has {len(names):,} names, but at most {MAX_COLUMNS:,} are allowed"
        )
    for name, times in Counter(names).items():
        if not name:
            raise SpecError("a column of the header has no name; give every column a name")
        if times > 1:
            raise SpecError(f"column {name!r} appears more than once in the header; rename one")
    return {"columns": [_column(name) for name in names]}


def _column(name: str) -> dict[str, Any]:
    if _IDENTIFIER_NAME.search(name):
        return {"name": name, "type": "identifier"}
    if _DATE_NAME.search(name):
        return {"name": name, "type": "date", "lower": "", "upper": ""}
    if _NUMBER_NAME.search(name):
        return {"name": name, "type": "integer", "lower": None, "upper": None}
    return {"name": name, "type": "categorical", "values": []}
