"""Escaping of texts in released CSV files, so that spreadsheets do not run them as formulas.

A text that begins like a formula gets an apostrophe in front. So does a text that already looks escaped,
so that different texts stay different. Some spreadsheets normalise full-width and other variants of these
characters before they look for a formula, so the variants are escaped as well.
"""

import re

FORMULA_STARTS = "=+-@\t\r\n" + (
    "\uff1d\uff0b\uff0d\uff20"  # full-width = + - @
    "\ufe66\ufe62\ufe63\ufe6b"  # small = + - @
    "\u207c\u208c\u2a75\u2a76"  # superscript and subscript =, two and three in one
    "\u207a\u208a\ufb29"  # superscript and subscript +, the Hebrew +
)
"""The characters that begin a formula, directly or after Unicode normalisation (NFKC)."""

ESCAPED = rf"^'('*[{re.escape(FORMULA_STARTS)}])"
"""Matches an escaped text; its group is the match without the apostrophe."""

_LIKE_A_FORMULA = re.compile(rf"'*[{re.escape(FORMULA_STARTS)}]")
_PLAIN_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def escaped(text: str) -> str:
    """Escape a text so that no spreadsheet treats it as a formula; different texts stay different."""
    if not _LIKE_A_FORMULA.match(text) or _PLAIN_NUMBER.fullmatch(text):
        return text
    return "'" + text


def unescaped(text: str) -> str:
    """Undo `escaped` on a text of a released CSV file."""
    return re.sub(ESCAPED, r"\1", text)
