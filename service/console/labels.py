"""Describe specifications in words."""

from collections.abc import Mapping, Sequence
from typing import Any

_SHOWN_SETS = 6
_TITLE_SETS = 2
_SHOWN_VALUES = 12
_FILES = {
    "answers": "Answers to the workload",
    "certificate": "Signed record of cost and contents",
    "model": "The fitted model",
    "report": "Report for readers",
    "synthetic": "Synthetic rows",
    "synthetic_groups": "Synthetic groups",
    "synthetic_individuals": "Synthetic individuals",
}


def describe_item(item: Mapping[str, Any]) -> str:
    """An item of a workload in one line."""
    kind = str(item["type"]).replace("_", " ")
    ways = f"{item['k']}-way " if "k" in item else ""
    if "attributes" in item:
        sets = [" × ".join(names) for names in item["attributes"]]
        more = f" and {len(sets) - _SHOWN_SETS} more" if len(sets) > _SHOWN_SETS else ""
        return f"{kind} of {'; '.join(sets[:_SHOWN_SETS])}{more}"
    if "queries" in item:
        return f"{len(item['queries'])} named {kind}"
    if "count" in item:
        return f"{item['count']:,} random {ways}{kind} (seed {item['seed']})"
    rest = {name: value for name, value in item.items() if name not in {"type", "k"}}
    shown = describe_settings(rest)
    return f"all {ways}{kind}" + (f" ({shown})" if shown else "")


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


def describe_settings(settings: Mapping[str, Any]) -> str:
    """Parameters in one line, without the mechanism's name."""
    parts = []
    for name, value in settings.items():
        if name in {"name", "measure"}:
            continue
        words = name.replace("_", " ")
        if isinstance(value, bool):
            parts.append(words if value else f"no {words}")
        elif isinstance(value, list):
            parts.append(f"{words} {', '.join(map(str, value))}")
        elif isinstance(value, dict):
            parts.append(f"{words} ({describe_settings(value)})")
        else:
            parts.append(f"{words} {value}")
    return ", ".join(parts)


def describe_column(column: Mapping[str, Any]) -> str:
    """What a column may hold, in one line."""
    if column["type"] == "identifier":
        return "never released"
    if column["type"] == "categorical":
        values = column["values"]
        more = f" and {len(values) - _SHOWN_VALUES:,} more" if len(values) > _SHOWN_VALUES else ""
        return ", ".join(values[:_SHOWN_VALUES]) + more
    bins = column.get("bins") or {}
    cut = ""
    if "width" in bins:
        cut = f", in bins of {bins['width']:g}"
    elif bins:
        number = bins.get("count") or len(bins["edges"]) - 1
        cut = f", in {number:,} bins"
    return f"{column['lower']:,.15g} to {column['upper']:,.15g}{cut}"


def describe_file(name: str) -> str:
    """What a released file is."""
    return _FILES.get(name.partition(".")[0], "")
