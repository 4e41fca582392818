"""Describe parts of a specification in one line of words."""

from collections.abc import Mapping
from typing import Any

_SHOWN_SETS = 6
"""Largest number of sets of columns that a description lists."""


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
