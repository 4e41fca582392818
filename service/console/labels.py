"""Describe specifications in words."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from scrim.spec.descriptions import describe_item

_DRAWN = re.compile(r"synthetic_(?P<number>\d+)(?P<table>|_groups|_individuals)")
"""The name of a further set of rows."""
_TITLE_SETS = 2
"""Largest number of sets of columns that a title lists."""
_SHOWN_VALUES = 12
"""Largest number of categories that are listed."""
_FILES = {
    "answers": "Answers to the workload",
    "certificate": "Signed record of cost and contents",
    "model": "The fitted model",
    "report": "Report for readers",
    "synthetic": "Synthetic rows",
    "synthetic_groups": "Synthetic groups",
    "synthetic_individuals": "Synthetic individuals",
}


def describe_workload(items: Sequence[Mapping[str, Any]]) -> str:
    """A whole workload in a few words, as a title."""
    first = items[0]
    if len(first.get("attributes", ())) > _TITLE_SETS:
        kind = str(first["type"]).replace("_", " ")
        words = f"{len(first['attributes']):,} chosen {kind}"
    else:
        words = describe_item(first)
    more = f" and {len(items) - 1} more" if len(items) > 1 else ""
    return words[0].upper() + words[1:] + more


def describe_column(column: Mapping[str, Any]) -> str:
    """What a column may hold, in one line."""
    kind = column["type"]
    if kind == "identifier":
        return "never released"
    if kind == "boolean":
        true, false = (column.get(each) or [each] for each in ("true", "false"))
        return f"{_some(true)} or {_some(false)}"
    if kind == "code":
        codes = column.get("values") or [each["code"] for each in column["code_list"]]
        return f"{len(codes):,} codes: {_some(codes)}"
    if kind in ("categorical", "ordinal"):
        return _some(column["values"], " < " if kind == "ordinal" else ", ")
    lower, upper = (_bound(column[each]) for each in ("lower", "upper"))
    return f"{lower} to {upper}{_cut(column.get('bins') or {})}"


def _some(values: Sequence[str], separator: str = ", ") -> str:
    left = len(values) - _SHOWN_VALUES
    return separator.join(values[:_SHOWN_VALUES]) + (f" and {left:,} more" if left > 0 else "")


def _bound(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:,.15g}"


def _cut(bins: Mapping[str, Any]) -> str:
    if "width" in bins:
        return f", in bins of {bins['width']:g}"
    number = bins.get("count") or bins.get("adaptive") or len(bins.get("edges", [None])) - 1
    return f", in {number:,} bins" if bins else ""


def describe_file(name: str) -> str:
    """What a released file is."""
    stem = name.partition(".")[0]
    drawn = _DRAWN.fullmatch(stem)
    if drawn is None:
        return _FILES.get(stem, "")
    return f"{_FILES['synthetic' + drawn['table']]}, set {drawn['number']} for standard errors"
