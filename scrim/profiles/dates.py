"""Dates and times of a public sample: their format, bounds and bins."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from scrim.profiles.missing import unreadable
from scrim.spec.columns.time_format import TimeFormat

DATE_FORMATS = (
    None,
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%Y/%m/%d",
    "%d-%m-%Y",
    "%d %b %Y",
    "%d %B %Y",
)
TIME_FORMATS = (
    None,
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M",
)
"""Formats of columns; None is ISO 8601."""
FIRST_TEXTS = 50
EARLIEST, LATEST = 1800, 2200
"""Years outside these are codes, such as 9999."""
BIN_MONTHS = (1, 3, 12, 24, 60, 120, 240)
"""Months of a bin."""
MOST_PERIODS = 24
SHORT_DAYS = 62
DATE_CODES = frozenset(
    {"0000-00-00", "00.00.0000", "00/00/0000", "9999-12-31", "31.12.9999", "12/31/9999"}
)
"""Dates that stand for missing."""


@dataclass(frozen=True)
class Dates:
    """The dates of a column."""

    format: str | None
    has_time: bool
    first: datetime
    last: datetime
    codes: tuple[str, ...]
    """Texts that stand for missing."""
    is_ambiguous: bool
    """Whether another order of day and month reads every cell as well."""

    @classmethod
    def of(cls, counts: Counter[str]) -> "Dates | None":
        """Read a column; None if most cells are no dates of one format."""
        texts = Counter({text: count for text, count in counts.items() if text not in DATE_CODES})
        readings = [each for each in map(texts_as, [texts] * len(_FORMATS), _FORMATS) if each]
        if not readings:
            return None
        form, moments, unread = readings[0]
        return cls(
            format=form.declared,
            has_time=not form.is_date,
            first=min(moments),
            last=max(moments),
            codes=(*sorted(set(counts) & DATE_CODES), *unread),
            is_ambiguous=any(each[0].is_date == form.is_date for each in readings[1:]),
        )

    def declare(self) -> dict[str, Any]:
        """Type, bounds at full years, and bins of calendar periods."""
        column: dict[str, Any] = {"type": "datetime" if self.has_time else "date"}
        lower, upper = date(self.first.year, 1, 1), date(self.last.year, 12, 31)
        column |= {"lower": lower.isoformat(), "upper": upper.isoformat()}
        if self.format is not None:
            column["format"] = self.format
        edges = [each.isoformat() for each in _edges(lower, upper)]
        end = "T23:59" if self.has_time else ""
        column["upper"] += end
        return column | {"bins": {"edges": [*edges, column["upper"]]}}


def texts_as(
    texts: Counter[str], form: TimeFormat
) -> tuple[TimeFormat, list[datetime], list[str]] | None:
    """The moments of a column in one format, and the codes among them; None if it has another format."""
    first = list(texts)[:FIRST_TEXTS]
    if not any(_read(text, form) for text in first):
        return None
    read = {text: _read(text, form) for text in texts}
    unread = unreadable(texts, lambda text: read[text] is not None)
    moments = [moment for moment in read.values() if moment is not None]
    return None if unread is None or not moments else (form, moments, unread)


def _read(text: str, form: TimeFormat) -> datetime | None:
    moment = form.read(text)
    if moment is None or not EARLIEST <= moment.year <= LATEST:
        return None
    # ISO 8601 reads dates and times, and years alone, which are numbers.
    has_time = ":" in text
    return moment if has_time != form.is_date and len(text) >= len("1.1.2000") else None


def _edges(lower: date, upper: date) -> Iterator[date]:
    """Starts of calendar periods from the first year to the last, few enough for bins."""
    months = (upper.year - lower.year + 1) * 12
    step = next((each for each in BIN_MONTHS if months <= each * MOST_PERIODS), months)
    for month in range(0, months, step):
        yield date(lower.year + month // 12, month % 12 + 1, 1)


_FORMATS = [
    *(TimeFormat.of(each, "day", True) for each in DATE_FORMATS),
    *(TimeFormat.of(each, "minute", False) for each in TIME_FORMATS),
]
