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
    missing = _describe_missing(column.get("missing"))
    if kind == "boolean":
        true, false = (column.get(each) or [each] for each in ("true", "false"))
        return f"{_some(true)} or {_some(false)}{missing}"
    if kind in ("categorical", "ordinal", "code"):
        listed = column.get("values") or [each["code"] for each in column["code_list"]]
        return _some(listed, " < " if kind == "ordinal" else ", ") + missing
    return _describe_range(column) + missing


def _some(values: Sequence[str], separator: str = ", ") -> str:
    left = len(values) - _SHOWN_VALUES
    return separator.join(values[:_SHOWN_VALUES]) + (f" and {left:,} more" if left > 0 else "")


def _describe_missing(missing: object) -> str:
    """The spellings of missing values, or their kinds if several are declared."""
    if isinstance(missing, Mapping):
        return f"; missing: {', '.join(dict.fromkeys(missing.values()))}"
    return f"; missing: {', '.join(missing)}" if isinstance(missing, list) else ""


def _describe_range(column: Mapping[str, Any]) -> str:
    """The bounds and bins of numbers and dates."""
    bins = column.get("bins") or {}
    cut = ""
    if "width" in bins:
        periods = f" {column['resolution']}s" if "resolution" in column else ""
        cut = f", in bins of {bins['width']:g}{periods}"
    elif "adaptive" in bins:
        cut = f", in {bins['adaptive']:,} bins that the data choose"
    elif bins:
        number = bins.get("count") or len(bins["edges"]) - 1
        cut = f", in {number:,} bins"
    if column["type"] in ("date", "datetime"):
        kept = f", by {column['resolution']}" if "resolution" in column else ""
        return f"{column['lower']} to {column['upper']}{kept}{cut}"
    return f"{column['lower']:,.15g} to {column['upper']:,.15g}{cut}"


def describe_file(name: str) -> str:
    """What a released file is."""
    stem = name.partition(".")[0]
    drawn = _DRAWN.fullmatch(stem)
    if drawn is None:
        return _FILES.get(stem, "")
    return f"{_FILES['synthetic' + drawn['table']]}, set {drawn['number']} for standard errors"
