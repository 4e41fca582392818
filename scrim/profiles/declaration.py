"""The declaration of a column, from its profile."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from scrim.profiles.dates import Dates
from scrim.profiles.missing import MEANINGS, spelled_missing, unreadable
from scrim.profiles.numbers import SPIKE, Numbers, is_number
from scrim.profiles.profile import Profile
from scrim.profiles.texts import booleans, looks_like_identifier, ordered, prefixes
from scrim.spec.columns import LARGEST_INTEGER
from scrim.spec.columns.missing import ONE_KIND

MOST_CATEGORIES = 100
MOST_LISTED_CODES = 10_000
LONGEST_CATEGORY = 100
FEW_ROWS = 20
"""With fewer rows than this, distinct texts are no sign of an identifier."""
FREE_TEXT_WORDS = 4
_NAMED_CODE = re.compile(
    r"(?i)plz|zip|post_?(?:al_?)?code|municipality|gemeinde|commune|nuts|icd|nace|isic|code$"
)
FREE_TEXT = (
    "holds free text, which cannot be released: leave it out, or derive a column of categories, codes or "
    "numbers from it"
)


@dataclass(frozen=True)
class Declaration:
    """What is proposed for a column of a sample."""

    column: dict[str, Any] | None
    """The declaration; None if the column is left out."""
    note: str
    """What to review, or why the column is left out."""


def declare(profile: Profile) -> Declaration:
    """Propose a declaration for a column, or say why there is none."""
    spelled = spelled_missing(profile.counts)
    texts = profile.without(spelled)
    if not texts:
        return Declaration(None, "has no values in the sample")
    if _identifies(profile, texts):
        note = "tells people apart: an identifier, which is never released; remove it if rows are people"
        return Declaration({"name": profile.name, "type": "identifier"}, note)
    made = (
        _of_boolean(texts)
        or _of_codes(profile, texts, only_named=True)
        or _of_numbers(texts)
        or _of_dates(texts)
        or _of_codes(profile, texts)
        or _of_categories(profile, texts)
    )
    if isinstance(made, str):
        return Declaration(None, made)
    fields, codes, note = made
    missing = [*spelled, *codes]
    if missing:
        fields["missing"] = _kinds(missing)
        note += f"; {_listed(missing)} {'mean' if len(missing) > 1 else 'means'} missing"
    return Declaration({"name": profile.name, **fields}, note)


Made = tuple[dict[str, Any], Iterable[str], str]
"""The fields of a column, its codes of missing, and a note; or why it is left out."""


def _of_boolean(texts: Counter[str]) -> Made | None:
    spelling = booleans(texts)
    if spelling is None:
        return None
    fields = {"type": "boolean", "true": spelling.true, "false": spelling.false}
    return fields, (), f"true is {_listed(spelling.true)}, false is {_listed(spelling.false)}"


def _of_numbers(texts: Counter[str]) -> Made | str | None:
    unread = unreadable(texts, is_number)
    if unread is None:
        return None
    numbers = Numbers.of(Counter({t: n for t, n in texts.items() if t not in set(unread)}))
    if max(abs(numbers.values[0]), abs(numbers.values[-1])) >= LARGEST_INTEGER // 2:
        return "holds numbers too large for bounds; declare an identifier if it tells people apart"
    column = numbers.declare()
    note = (
        f"{_shown(numbers.values[0])} to {_shown(numbers.values[-1])} in the sample, declared "
        f"{column['lower']:g} to {column['upper']:g}"
    )
    if numbers.outliers:
        note += f"; {numbers.outliers:,} numbers of the sample lie far outside and would be clamped"
    if _has_spike_below(numbers):
        note += f'; if {_shown(numbers.values[0])} is a code, add it to "missing"'
    return column, (*numbers.codes, *unread), note


def _has_spike_below(numbers: Numbers) -> bool:
    """Whether a negative number is frequent although all others are at least 0."""
    first = numbers.values[0]
    is_alone = len(numbers.values) > 1 and first < 0 <= numbers.values[1]
    return is_alone and numbers.counts[0] >= SPIKE * numbers.total


def _of_dates(texts: Counter[str]) -> Made | None:
    dates = Dates.of(texts)
    if dates is None:
        return None
    column = dates.declare()
    first, last = dates.first.date().isoformat(), dates.last.date().isoformat()
    note = f"{first} to {last} in the sample, declared {column['lower']} to {column['upper']}"
    if dates.is_ambiguous:
        note += f"; day and month may be the other way round: the format is {dates.format}"
    return column, dates.codes, note


def _of_codes(profile: Profile, texts: Counter[str], *, only_named: bool = False) -> Made | None:
    if only_named and not _NAMED_CODE.search(profile.name):
        return None
    if not profile.is_complete or len(texts) > MOST_LISTED_CODES or ordered(texts):
        return None
    if not only_named and 2 * len(texts) > texts.total():
        return None  # most rows have a text of their own
    levels = prefixes(texts)
    if levels is None:
        return None
    fields = {
        "type": "code",
        "values": sorted(texts),
        "levels": levels,
        "reference": {text: float(texts[text]) for text in sorted(texts)},
    }
    lengths = _listed([str(length) for length in levels])
    note = (
        f"{len(texts):,} codes, grouped by their first {lengths} characters; add the codes that the sample "
        "lacks, from their public list"
    )
    return fields, (), note


def _of_categories(profile: Profile, texts: Counter[str]) -> Made | str:
    if reason := _why_no_categories(profile, texts):
        return reason
    if values := ordered(texts):
        return {"type": "ordinal", "values": values}, (), f"{len(values)} ordered categories"
    column = {"type": "categorical", "values": sorted(texts)}
    return column, (), f"{len(texts)} categories; add those that the sample lacks"


def _why_no_categories(profile: Profile, texts: Counter[str]) -> str | None:
    if profile.longest > LONGEST_CATEGORY or _has_sentences(texts):
        return FREE_TEXT
    if len(texts) > MOST_CATEGORIES:
        return (
            f"has more than {MOST_CATEGORIES} different texts: names or free text tell about single "
            "people; group them, or declare an identifier if it tells people apart"
        )
    if profile.cells >= FEW_ROWS and 2 * len(texts) > profile.cells:
        return (
            "has a text of its own in most rows: group them, or declare an identifier if it tells "
            "people apart"
        )
    return None


def _has_sentences(texts: Counter[str]) -> bool:
    """Whether many different texts have many words."""
    words = sum(len(text.split()) for text in texts)
    return len(texts) > MOST_CATEGORIES and words >= FREE_TEXT_WORDS * len(texts)


def _identifies(profile: Profile, texts: Counter[str]) -> bool:
    """Whether the column tells people apart: it counts rows, or is named so and has many values."""
    if profile.cells < FEW_ROWS:
        return False
    if len(texts) == texts.total() and _counts_rows(texts):
        return True
    is_fine = len(texts) > MOST_CATEGORIES or len(texts) == texts.total()
    return is_fine and looks_like_identifier(profile.name, texts)


def _counts_rows(texts: Counter[str]) -> bool:
    """Whether every text is a whole number, the previous one plus one."""
    if not all(text.isdecimal() and is_number(text) for text in texts):
        return False
    numbers = [int(text) for text in texts]
    return all(number == numbers[0] + place for place, number in enumerate(numbers))


def _kinds(missing: list[str]) -> list[str] | dict[str, str]:
    """The spellings of missing; with their kinds if there are several."""
    kinds = {text: MEANINGS.get(text.lower(), ONE_KIND) for text in missing}
    return missing if len(set(kinds.values())) == 1 else kinds


def _listed(texts: Iterable[str]) -> str:
    found = list(texts)
    return ", ".join(found) if len(found) < 2 else f"{', '.join(found[:-1])} and {found[-1]}"


def _shown(number: Decimal) -> str:
    return f"{float(number):g}"
