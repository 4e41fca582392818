"""Spellings of missing values in a public sample."""

import re
from collections import Counter
from collections.abc import Callable

ALWAYS = frozenset(
    {
        "#n/a", "(missing)", "(null)", "-", "--", "---", ".", "..", "?", "??", "missing", "n.a.",
        "n/a", "na", "nan", "not available", "null", "<na>",
    }
)  # fmt: skip
"""Spellings that are no values of any column, in small letters."""
MEANINGS = {
    "declined": "refused",
    "do not know": "unknown",
    "don't know": "unknown",
    "dont know": "unknown",
    "inapplicable": "not applicable",
    "no answer": "refused",
    "none": "not applicable",
    "not applicable": "not applicable",
    "not recorded": "not recorded",
    "not stated": "refused",
    "refused": "refused",
    "unk": "unknown",
    "unknown": "unknown",
}
"""Spellings that may be categories of their own, but never numbers or dates, with what they mean."""
READABLE_SHARE = 0.8
"""Share of the cells that must be numbers, or dates, for the rest to be codes of missing."""
MOST_SPELLED = 8
"""Maximum number of different codes of missing in one column."""
_NINES = re.compile(r"-?9{2,}(?:\.9+)?|-9")


def spelled_missing(counts: Counter[str]) -> list[str]:
    """The texts that mean missing in a column of any type."""
    return sorted(text for text in counts if text.lower() in ALWAYS)


def unreadable(counts: Counter[str], reads: Callable[[str], bool]) -> list[str] | None:
    """The few texts that cannot be read among many that can; None if too much cannot be read."""
    others = [text for text in counts if not reads(text)]
    readable = counts.total() - sum(counts[text] for text in others)
    few = len(others) <= MOST_SPELLED and readable >= READABLE_SHARE * counts.total()
    is_code = all(text.lower() in MEANINGS or text.lower() in ALWAYS for text in others)
    return sorted(others) if few and readable and is_code else None


def looks_like_a_code(text: str) -> bool:
    """Whether a number is written like a code of missing: 99, 999, -9, 99999 and so on."""
    return _NINES.fullmatch(text) is not None
