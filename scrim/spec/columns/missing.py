"""Spellings of missing values, and their kinds, which a column may keep apart."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from scrim.spec.base import Name

ONE_KIND = "missing"
"""The kind of missing values that are not kept apart."""
MAX_SPELLINGS = 100

Spelling = Annotated[str, Field(max_length=100)]
Missing = (
    Annotated[list[Spelling], Field(min_length=1, max_length=MAX_SPELLINGS)]
    | Annotated[dict[Spelling, Name], Field(min_length=1, max_length=MAX_SPELLINGS)]
)
"""Spellings of missing values. A list makes one kind; a mapping names the kind of each spelling."""


def kind_of_spelling(missing: Missing | None) -> dict[str, str]:
    """The kind of each spelling. An empty cell is always missing, unless it is a declared value."""
    if missing is None or isinstance(missing, list):
        return dict.fromkeys([*(missing or ()), ""], ONE_KIND)
    return missing if "" in missing else {"": ONE_KIND, **missing}


def kinds_of(missing: Missing | None) -> tuple[str, ...]:
    """The kinds of missing values, in order. The first is that of empty and unreadable cells."""
    kinds = kind_of_spelling(missing)
    return tuple(dict.fromkeys([kinds[""], *kinds.values()]))


def as_number(text: str) -> float | None:
    """The number that a spelling is; None if it is none."""
    try:
        return float(text)
    except ValueError:
        return None


def without(missing: Missing, values: Sequence[str]) -> Missing | None:
    """The spellings that are not values of a column; None if there are none left."""
    taken = set(values)
    if isinstance(missing, list):
        return [spelling for spelling in missing if spelling not in taken] or None
    return {spelling: kind for spelling, kind in missing.items() if spelling not in taken} or None
