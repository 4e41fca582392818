"""Texts of a public sample: booleans, ordered categories, codes, identifiers and free text."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

BOOLEANS = (
    ("true", "false"),
    ("yes", "no"),
    ("y", "n"),
    ("t", "f"),
    ("ja", "nein"),
    ("oui", "non"),
    ("si", "no"),
    ("1", "0"),
)
"""Spellings of true and false, in small letters."""
SCALES = (
    ("never", "rarely", "seldom", "sometimes", "occasionally", "often", "usually", "always"),
    ("none", "minimal", "low", "mild", "medium", "moderate", "high", "severe", "very high", "critical"),
    ("very poor", "poor", "fair", "good", "very good", "excellent"),
    ("very bad", "bad", "fair", "good", "very good"),
    ("strongly disagree", "disagree", "neutral", "neither", "agree", "strongly agree"),
    ("very dissatisfied", "dissatisfied", "neutral", "satisfied", "very satisfied"),
    ("xxs", "xs", "s", "m", "l", "xl", "xxl"),
    ("small", "medium", "large"),
    ("primary", "lower secondary", "secondary", "upper secondary", "tertiary"),
    ("routine", "elective", "urgent", "emergency"),
    ("i", "ii", "iii", "iv", "v", "vi"),
    ("mon", "tue", "wed", "thu", "fri", "sat", "sun"),
    ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
)  # fmt: skip
"""Ordered words; a column with three or more of one scale, and no others, is ordered."""
MOST_NUMBERED = 30
LONGEST_CODE = 12
MOST_PREFIXES = 4
FEW_CODES = 12
_NUMBERED = re.compile(r"(?P<before>[^0-9]*)(?P<number>[0-9]+)(?P<after>.*)")
_CODE_FORM = re.compile(r"[A-Z]{0,3}[0-9][0-9A-Z.\-/]*")
_IDENTIFIER_FORM = re.compile(
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[A-Za-z]{0,10}[-_ ]?[0-9]{1,18}"
)
_NAMED_IDENTIFIER = re.compile(
    r"(?i:(?:^|[_\W])(?:[a-z]?id|key|uuid|guid|nr|number)$)|[a-z](?:ID|Id|Key|Nr)$"
)


@dataclass(frozen=True)
class Spelling:
    """How a column spells true and false."""

    true: list[str]
    false: list[str]


def booleans(texts: Iterable[str]) -> Spelling | None:
    """The spellings of true and false; None if the column is no boolean."""
    found = sorted(texts)
    for true, false in BOOLEANS:
        of_true = [text for text in found if text.lower() == true]
        of_false = [text for text in found if text.lower() == false]
        if of_true and of_false and len(of_true) + len(of_false) == len(found):
            return Spelling(of_true, of_false)
    return None


def ordered(texts: Iterable[str]) -> list[str] | None:
    """The texts in their order, if they have one: words of a scale, or numbered classes."""
    found = sorted(texts)
    for scale in SCALES:
        if len(found) >= 3 and all(text.lower() in scale for text in found):
            places = [scale.index(text.lower()) for text in found]
            if len(set(places)) == len(places):
                return [text for _, text in sorted(zip(places, found, strict=True))]
    return _numbered(found)


def _numbered(texts: list[str]) -> list[str] | None:
    """Classes such as `18-24`, `25-34`, `65+`, or `stage 1`, `stage 2`, `stage 10`."""
    parsed = [_NUMBERED.fullmatch(text) for text in texts]
    matches = [each for each in parsed if each is not None]
    if not 3 <= len(texts) <= MOST_NUMBERED or len(matches) < len(texts):
        return None
    if all(text.isdecimal() for text in texts):
        return None  # codes with leading zeros
    numbers = [int(each["number"]) for each in matches]
    # `< 18` comes before `18-24`.
    below = [each["before"].strip() in ("<", "under", "below", "up to") for each in matches]
    befores = {each["before"].strip().lower() for each in matches} - {
        "<",
        "under",
        "below",
        "up to",
        ">",
    }
    if len(befores) > 1 or len(set(zip(numbers, below, strict=True))) < len(texts):
        return None
    order = sorted(range(len(texts)), key=lambda place: (numbers[place], not below[place]))
    return [texts[place] for place in order]


def prefixes(texts: Counter[str]) -> list[int] | None:
    """The lengths of the prefixes that divide codes into groups; None if the texts are no codes."""
    if len(texts) < FEW_CODES or not all(_CODE_FORM.fullmatch(text) for text in texts):
        return None
    longest = max(map(len, texts))
    if longest > LONGEST_CODE or longest < 2:
        return None
    lengths, groups = [], 1
    for length in range(1, longest):
        found = len({text[:length] for text in texts})
        # A level is worth having if it divides the one before, and is coarser than the codes.
        if found >= 1.5 * groups and found <= 0.8 * len(texts):
            lengths.append(length)
            groups = found
    return lengths[-MOST_PREFIXES:] or None


def looks_like_identifier(name: str, texts: Counter[str]) -> bool:
    """Whether name and cells are those of an identifier."""
    is_named = _NAMED_IDENTIFIER.search(name) is not None
    return is_named and all(_IDENTIFIER_FORM.fullmatch(text) for text in texts)
