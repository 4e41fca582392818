"""The profile of a column of a public sample, and a declaration for it."""

import re
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from scrim.spec.columns import LARGEST_INTEGER

MOST_CATEGORIES = 100
LONGEST_CATEGORY = 100
MOST_BINS = 20
MOST_DECIMALS = 6
"""Maximum decimals to declare; more digits come from floating-point arithmetic."""
FINEST_DECIMALS = 15
FEW_ROWS = 20
"""With fewer rows than this, distinct texts are no sign of an identifier."""

# A number with leading zeros is a code, such as a postal code.
NUMBER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?")


@dataclass
class Profile:
    """Statistics of one column, updated cell by cell; only what a declaration needs is kept."""

    name: str
    cells: int = 0
    """Number of cells that are not missing."""
    texts: set[str] = field(default_factory=set)
    """The distinct texts, until there are too many."""
    is_number: bool = True
    is_whole: bool = True
    counts_rows: bool = True
    """Whether every number is the previous one plus one."""
    decimals: int = 0
    lowest: Decimal = Decimal("Infinity")
    highest: Decimal = Decimal("-Infinity")
    longest: int = 0
    _last: Decimal | None = None

    def see(self, text: str | None) -> None:
        """Add a cell; an empty one is missing."""
        if text is None or not text.strip():
            return
        text = text.strip()
        self.cells += 1
        self.longest = max(self.longest, len(text))
        if len(self.texts) <= MOST_CATEGORIES:
            self.texts.add(text)
        if NUMBER.fullmatch(text) is None:
            self.is_number = self.is_whole = self.counts_rows = False
        elif self.is_number:
            self._see_number(Decimal(text))

    def _see_number(self, number: Decimal) -> None:
        self.lowest, self.highest = min(self.lowest, number), max(self.highest, number)
        self.decimals = max(self.decimals, -int(number.normalize().as_tuple().exponent))
        self.is_whole = self.is_whole and number == number.to_integral_value()
        self.counts_rows = self.counts_rows and (self._last is None or number == self._last + 1)
        self._last = number

    def why_not(self) -> str | None:
        """Why the column cannot be declared; None if it can."""
        if self.cells == 0:
            return "has no values in the sample"
        if self.is_number:
            return self._why_no_number()
        if self.longest > LONGEST_CATEGORY:
            return "holds long texts, which are no categories"
        if len(self.texts) > MOST_CATEGORIES:
            return (
                f"has more than {MOST_CATEGORIES} different texts: names, dates or free text tell about "
                "single people; group them, or declare an identifier if it tells people apart"
            )
        if self.cells >= FEW_ROWS and 2 * len(self.texts) > self.cells:
            return (
                "has a text of its own in most rows: group them, or declare an identifier if it tells "
                "people apart"
            )
        return None

    def _why_no_number(self) -> str | None:
        if self.counts_rows and self.cells >= FEW_ROWS:
            return "counts the rows; declare an identifier if it tells people apart"
        if max(abs(self.lowest), abs(self.highest)) >= LARGEST_INTEGER // 2:
            return (
                "holds numbers too large for bounds; declare an identifier if it tells people apart"
            )
        return None

    def declare(self) -> tuple[dict[str, Any], str]:
        """The declaration of the column, and a note about it."""
        if not self.is_number:
            values = sorted(self.texts)
            column = {"name": self.name, "type": "categorical", "values": values}
            return column, f"{len(values)} categories; add those that the sample lacks"
        seen = f"{_shown(self.lowest)} to {_shown(self.highest)} in the sample"
        column = self._declare_whole() if self.is_whole else self._declare_real()
        return column, f"{seen}, declared {column['lower']:g} to {column['upper']:g}"

    def _declare_whole(self) -> dict[str, Any]:
        width = max(Decimal(1), _round_up((self.highest - self.lowest + 1) / MOST_BINS))
        lower = _multiple(self.lowest / width, ROUND_FLOOR) * width
        # Both bounds are included, so that the last bin is as wide as the others.
        upper = _multiple((self.highest + 1) / width, ROUND_CEILING) * width - 1
        return {
            "name": self.name,
            "type": "integer",
            "lower": int(lower),
            "upper": int(upper),
            "bins": {"width": float(width)},
        }

    def _declare_real(self) -> dict[str, Any]:
        # A bin narrower than the last digit would hold no number.
        finest = Decimal(1).scaleb(-min(self.decimals, FINEST_DECIMALS))
        width = max(finest, _round_up((self.highest - self.lowest) / MOST_BINS))
        lower = _multiple(self.lowest / width, ROUND_FLOOR) * width
        upper = max(_multiple(self.highest / width, ROUND_CEILING) * width, lower + width)
        column = {
            "name": self.name,
            "type": "real",
            "lower": float(lower),
            "upper": float(upper),
            "bins": {"width": float(width)},
        }
        return column | ({"decimals": self.decimals} if self.decimals <= MOST_DECIMALS else {})


def _round_up(number: Decimal) -> Decimal:
    """Round up to 1, 2, 5, 10, 20, 50 ... or a tenth of these."""
    if number <= 0:
        return Decimal(0)
    power = Decimal(1).scaleb(number.adjusted())
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= number)


def _multiple(number: Decimal, rounding: str) -> Decimal:
    return number.to_integral_value(rounding)


def _shown(number: Decimal) -> str:
    return f"{float(number):g}"
