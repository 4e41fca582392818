"""Formats of dates and times: ISO 8601, or declared with the directives of strptime.

Names of months are English, whatever the locale. The same code reads and writes on every machine.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, lru_cache, partial
from typing import Self

from scrim.spec.columns.periods import Resolution

_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_SHORT = [name[:3] for name in _MONTHS]

_WRITERS: dict[str, Callable[[datetime], str]] = {
    "Y": lambda t: f"{t.year:04}",
    "y": lambda t: f"{t.year % 100:02}",
    "m": lambda t: f"{t.month:02}",
    "b": lambda t: _SHORT[t.month - 1],
    "B": lambda t: _MONTHS[t.month - 1],
    "d": lambda t: f"{t.day:02}",
    "j": lambda t: f"{t.timetuple().tm_yday:03}",
    "q": lambda t: str((t.month + 2) // 3),
    "G": lambda t: f"{t.isocalendar().year:04}",
    "V": lambda t: f"{t.isocalendar().week:02}",
    "H": lambda t: f"{t.hour:02}",
    "I": lambda t: f"{t.hour % 12 or 12:02}",
    "p": lambda t: "AM" if t.hour < 12 else "PM",
    "M": lambda t: f"{t.minute:02}",
    "S": lambda t: f"{t.second:02}",
    "f": lambda t: f"{t.microsecond:06}",
}
_PATTERNS = {
    "Y": r"\d{4}", "G": r"\d{4}", "j": r"\d{1,3}", "q": "[1-4]", "f": r"\d{1,9}",
    "b": "|".join(_SHORT), "B": "|".join(_MONTHS), "p": "AM|PM",
}  # fmt: skip
_TWO_DIGITS = r"\d{1,2}"

DIRECTIVES = " ".join(f"%{each}" for each in _WRITERS)

_ISO = re.compile(
    r"(?P<Y>\d{4})(?:-(?P<m>\d\d)(?:-(?P<d>\d\d)(?:[T ](?P<H>\d\d)(?::(?P<M>\d\d)"
    r"(?::(?P<S>\d\d)(?:[.,]\d+)?)?)?(?P<z>Z|[+-]\d\d(?::?\d\d)?)?)?)?)?",
    re.ASCII,
)
_PLAIN = {"Y", "m", "d", "H", "M", "S"}
_NEEDED = {"year": "Y", "quarter": "m", "month": "m", "week": "d", "day": "d"}


@dataclass(frozen=True)
class TimeFormat:
    """How the cells of a column write a moment; without a declared format, as in ISO 8601."""

    declared: str | None
    resolution: Resolution
    is_date: bool = True

    @classmethod
    @lru_cache(maxsize=1024)
    def of(cls, declared: str | None, resolution: Resolution, is_date: bool) -> Self:
        """The format of a column, kept: its pattern is made once."""
        return cls(declared, resolution, is_date)

    def refuse_faults(self) -> None:
        """Require known directives that determine the period."""
        if self.declared is None:
            return
        found = re.findall(r"%(.?)", self.declared.replace("%%", ""), re.DOTALL)
        if unknown := [each for each in found if each not in _WRITERS]:
            raise ValueError(f'"format" has the directive %{unknown[0]}; known are {DIRECTIVES}')
        if len(set(found)) < len(found):
            raise ValueError('"format" must not repeat a directive')
        if not self._determines(set(found)):
            raise ValueError(f'"format" does not determine the {self.resolution} of a value')

    def _determines(self, found: set[str]) -> bool:
        has_year, has_month = bool(found & {"Y", "y"}), bool(found & {"m", "b", "B"})
        has_day = has_year and ((has_month and "d" in found) or "j" in found)
        has_hour = has_day and ("H" in found or {"I", "p"} <= found)
        match self.resolution:
            case "year":
                return has_year
            case "quarter":
                return has_year and (has_month or bool(found & {"q", "j"}))
            case "month":
                return has_year and (has_month or "j" in found)
            case "week":
                return has_day or {"G", "V"} <= found
            case "day":
                return has_day
            case "hour":
                return has_hour
        return has_hour and "M" in found

    def write(self, moment: datetime) -> str:
        """The text of a moment."""
        return "".join([write(moment) for write in self._writers])

    def read(self, text: str) -> datetime | None:
        """The moment that a cell means; None if it is not a moment of this format."""
        found = (_ISO if self.declared is None else self._pattern).fullmatch(text.strip())
        if found is None:
            return None
        parts = {name: part for name, part in found.groupdict().items() if part}
        if self.declared is None and _NEEDED.get(self.resolution, "d") not in parts:
            return None
        try:
            # Only numbers from the largest to the smallest: the usual case, many times faster.
            if parts.keys() <= _PLAIN:
                return datetime(
                    int(parts["Y"]),
                    int(parts.get("m", 1)),
                    int(parts.get("d", 1)),
                    int(parts.get("H", 0)),
                    int(parts.get("M", 0)),
                    min(int(parts.get("S", 0)), 59),
                )
            return _moment(parts)
        except (ValueError, OverflowError):
            return None

    @cached_property
    def _writers(self) -> list[Callable[[datetime], str]]:
        default = "%Y-%m-%d" if self.is_date else "%Y-%m-%dT%H:%M"
        pieces = re.split("%(.)", self.declared or default)
        return [
            _WRITERS[piece] if i % 2 and piece != "%" else partial(_constant, piece)
            for i, piece in enumerate(pieces)
            if piece
        ]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        pieces = re.split("%(.)", self.declared or "")
        pattern = "".join(
            re.escape(piece) if i % 2 == 0 else "%" if piece == "%" else _group(piece)
            for i, piece in enumerate(pieces)
        )
        return re.compile(pattern, re.ASCII | re.IGNORECASE)


def iso_moment(text: str, resolution: Resolution) -> datetime | None:
    """The moment that a declaration writes in ISO 8601."""
    return TimeFormat.of(None, resolution, True).read(text)


def _constant(text: str, moment: datetime) -> str:
    return text


def _group(directive: str) -> str:
    return f"(?P<{directive}>{_PATTERNS.get(directive, _TWO_DIGITS)})"


def _moment(parts: dict[str, str]) -> datetime:
    """Put the parts together; ValueError if there is no such moment."""
    number = {name: int(part) for name, part in parts.items() if part.isdecimal()}
    hour = number.get("H", 0)
    if "I" in number:
        if not 1 <= number["I"] <= 12:
            raise ValueError
        hour = number["I"] % 12 + 12 * (parts.get("p", "").upper() == "PM")
    moment = _day(parts, number).replace(
        hour=hour, minute=number.get("M", 0), second=min(number.get("S", 0), 59)
    )
    return moment - _offset(parts.get("z", "Z"))


def _day(parts: dict[str, str], number: dict[str, int]) -> datetime:
    if "G" in number and "V" in number and "Y" not in number:
        return datetime.fromisocalendar(number["G"], number["V"], 1)
    # Two digits as POSIX reads them.
    century = 1900 if number.get("y", 0) >= 69 else 2000
    year = number["Y"] if "Y" in number else century + number["y"]
    if "j" in number:
        day = datetime(year, 1, 1) + timedelta(days=number["j"] - 1)
        if number["j"] < 1 or day.year != year:
            raise ValueError
        return day
    month = number.get("m", number["q"] * 3 - 2 if "q" in number else 1)
    for name in ("b", "B"):
        if name in parts:
            month = _SHORT.index(parts[name][:3].title()) + 1
    return datetime(year, month, number.get("d", 1))


def _offset(zone: str) -> timedelta:
    """The distance of a zone from UTC; times with a zone are converted to UTC."""
    if zone == "Z":
        return timedelta()
    digits = zone[1:].replace(":", "").ljust(4, "0")
    ahead = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return ahead if zone[0] == "+" else -ahead
