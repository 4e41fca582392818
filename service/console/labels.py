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
    if column["type"] == "identifier":
        return "never released"
    missing = _describe_missing(column.get("missing"))
    if column["type"] == "boolean":
        return f"{column['true'][0]} or {column['false'][0]}{missing}"
    if column["type"] in ("categorical", "ordinal", "code"):
        listed = column.get("values") or [each["code"] for each in column["code_list"]]
        more = f" and {len(listed) - _SHOWN_VALUES:,} more" if len(listed) > _SHOWN_VALUES else ""
        between = " < " if column["type"] == "ordinal" else ", "
        return between.join(listed[:_SHOWN_VALUES]) + more + missing
    return _describe_range(column) + missing


def _describe_missing(missing: object) -> str:
    """The kinds of missing values, if several are declared."""
    kinds = dict.fromkeys(missing.values()) if isinstance(missing, Mapping) else {}
    return f"; missing: {', '.join(kinds)}" if kinds else ""


def _describe_range(column: Mapping[str, Any]) -> str:
    """The bounds and bins of numbers and dates."""
    bins = column.get("bins") or {}
    cut = ""
    if "width" in bins:
        periods = f" {column['resolution']}s" if "resolution" in column else ""
        cut = f", in bins of {bins['width']:g}{periods}"
    elif bins:
        number = bins.get("count") or len(bins["edges"]) - 1
        cut = f", in {number:,} bins"
    if "resolution" in column:
        return f"{column['lower']} to {column['upper']}, by {column['resolution']}{cut}"
    return f"{column['lower']:,.15g} to {column['upper']:,.15g}{cut}"


def describe_file(name: str) -> str:
    """What a released file is."""
    stem = name.partition(".")[0]
    drawn = _DRAWN.fullmatch(stem)
    if drawn is None:
        return _FILES.get(stem, "")
    return f"{_FILES['synthetic' + drawn['table']]}, set {drawn['number']} for standard errors"
