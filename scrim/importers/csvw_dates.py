"""Conversion of dates in CSVW metadata."""

import re
from typing import Any

from scrim.importers.declaration import Fields
from scrim.spec.errors import SpecError

DATES = {
    "date": {"type": "date"},
    "gYear": {"type": "date", "resolution": "year"},
    "gYearMonth": {"type": "date", "resolution": "month"},
    "dateTime": {"type": "datetime"},
    "datetime": {"type": "datetime"},
    "dateTimeStamp": {"type": "datetime"},
}
"""The declaration of each datatype that is a date."""

_BOUNDS = {"lower": ("minimum", "minInclusive"), "upper": ("maximum", "maxInclusive")}
_DIRECTIVES = {
    "yyyy": "%Y", "MM": "%m", "M": "%m", "dd": "%d", "d": "%d", "HH": "%H", "mm": "%M", "ss": "%S",
}  # fmt: skip
_PERIODS = {"gYear": "%Y", "gYearMonth": "%Y-%m"}
"""The form of cells without a format."""


def date_declaration(what: str, fields: Fields, base: str, datatype: Fields) -> dict[str, Any]:
    """The declaration of a date from its datatype, bounds and format."""
    bounds = {}
    for bound, names in _BOUNDS.items():
        found = next((fields[name] for name in names if fields.get(name) is not None), None)
        if not isinstance(found, str):
            raise SpecError(
                f"{what}: dates need minimum and maximum as text in ISO 8601, which are never read from "
                "the data; add them"
            )
        bounds[bound] = found
    pattern = datatype.get("format")
    declared = _PERIODS.get(base) if pattern is None else _directives(what, pattern)
    return {**DATES[base], **bounds, **({} if declared is None else {"format": declared})}


def _directives(what: str, pattern: Any) -> str:
    """A CSVW pattern such as `dd.MM.yyyy` with the directives of strptime."""
    found = re.finditer(r"([A-Za-z])\1*|[^A-Za-z]+", pattern) if isinstance(pattern, str) else []
    pieces = [piece[0] for piece in found]
    known = {**_DIRECTIVES, "T": "T"}
    if not pieces or any(piece[0].isalpha() and piece not in known for piece in pieces):
        raise SpecError(
            f"{what}: this format of dates is not supported; write yyyy-MM-dd or similar"
        )
    return "".join(known.get(piece, piece.replace("%", "%%")) for piece in pieces)
