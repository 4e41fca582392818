"""Formatting of texts and numbers for readers.

Curators declare names and categories freely. Characters that are invisible, or that change
the direction of the text, are written as their code, so that no text looks like another one.
"""

import math
import unicodedata
from typing import Any

from markupsafe import Markup

from scrim.spec.budget import UNITS_PER_RHO

_UNSEEN = frozenset("\u00ad\u061c\u180e\u200b\u200e\u200f\u2060\ufeff") | frozenset(
    chr(code)
    for span in ((0x202A, 0x202F), (0x2061, 0x2070), (0xFFF9, 0xFFFC))
    for code in range(*span)
)
_MILLIONTH = UNITS_PER_RHO // 10**6
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def visible(value: Any) -> Any:
    """Replace invisible characters of a text by their codes; keep everything else, including markup."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return "".join(_visible(character) for character in value)


def _visible(character: str) -> str:
    # Control characters, surrogates, unassigned codes, and separators of lines and paragraphs.
    if character in _UNSEEN or unicodedata.category(character) in {"Cc", "Cs", "Cn", "Zl", "Zp"}:
        return f"\\u{{{ord(character):x}}}"
    return character


def width_of(text: str) -> int:
    """Width of a text in columns; characters of East Asian scripts take two."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def shortened(text: str, width: int) -> str:
    """Shorten a text to at most `width` columns."""
    text = visible(text)
    if width_of(text) <= width:
        return text
    kept = text[:width]
    while width_of(kept) >= width:
        kept = kept[:-1]
    return kept + "…"


def whole(number: float) -> str:
    """Format an integer with its digits in groups of three."""
    return f"{number:,.0f}".replace("-", "−")


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Format a number with its noun, such as `1 row` or `2 rows`."""
    return f"{whole(number)} {noun if number == 1 else plural or noun + 's'}"


def percent(share: float) -> str:
    """Format a share as a percentage; a positive share is never shown as 0%."""
    if 0 < share < 0.0005:
        return "<0.1%"
    return f"{100 * share:.1f}%"


def percent_at_most(share: float) -> str:
    """Format a bound on a share, rounded up, with two digits if it is small."""
    digits = 1 if share >= 0.01 else 2 if share >= 0.001 else 4
    scale = 10 ** (digits + 2)
    return f"{math.ceil(share * scale) / scale * 100:.{digits}f}%"


def rounded_up(number: float, digits: int = 3) -> str:
    """Round up, so that spending and leakage are never understated."""
    return f"{math.ceil(number * 10**digits) / 10**digits:.{digits}f}"


def rho_spent(units: int, *, aligned: bool = False) -> str:
    """An amount as rho, rounded up to six digits after the point; all of them where aligned."""
    return _millionths(-(-units // _MILLIONTH), aligned)


def rho_left(units: int, *, aligned: bool = False) -> str:
    """An amount as rho, rounded down to six digits after the point; all of them where aligned."""
    return _millionths(units // _MILLIONTH, aligned)


def _millionths(amount: int, aligned: bool) -> str:
    written = "{}.{:06d}".format(*divmod(amount, 10**6))
    return written if aligned else written.rstrip("0").rstrip(".")


def power(number: float) -> str:
    """Format a small number, such as 10⁻⁹ or 2.5×10⁻⁷."""
    mantissa, _, exponent = f"{number:.3g}".partition("e")
    if not exponent:
        mantissa, _, exponent = f"{number:.2e}".partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    raised = f"10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
    return raised if mantissa == "1" else f"{mantissa}×{raised}"


def size_of(size: int) -> str:
    """Format a number of bytes with a suitable unit."""
    if size < 1000:
        return counted(size, "byte")
    unit = next(i for i in (1, 2, 3, 4) if size < 999_500 * 1000 ** (i - 1) or i == 4)
    return f"{size / 1000**unit:.3g} {('kB', 'MB', 'GB', 'TB')[unit - 1]}"
