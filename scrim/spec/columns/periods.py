"""Periods of time: years, quarters, months, weeks, days, hours and minutes as consecutive numbers."""

from collections.abc import Callable
from datetime import datetime
from typing import Literal

Resolution = Literal["year", "quarter", "month", "week", "day", "hour", "minute"]
"""The length of a period. A week starts on Monday."""
DateResolution = Literal["year", "quarter", "month", "week", "day"]


def _days(moment: datetime) -> int:
    return moment.toordinal() - 1


_PERIOD_OF: dict[str, Callable[[datetime], int]] = {
    "year": lambda moment: moment.year - 1,
    "quarter": lambda moment: (moment.year - 1) * 4 + (moment.month - 1) // 3,
    "month": lambda moment: (moment.year - 1) * 12 + moment.month - 1,
    # The first day of year 1 was a Monday.
    "week": lambda moment: _days(moment) // 7,
    "day": _days,
    "hour": lambda moment: _days(moment) * 24 + moment.hour,
    "minute": lambda moment: (_days(moment) * 24 + moment.hour) * 60 + moment.minute,
}


def period_of(moment: datetime, resolution: Resolution) -> int:
    """The number of the period that contains a moment, counted from the start of year 1."""
    return _PERIOD_OF[resolution](moment)


def start_of(period: int, resolution: Resolution) -> datetime:
    """The first moment of a period."""
    match resolution:
        case "year":
            return datetime(period + 1, 1, 1)
        case "quarter":
            return datetime(period // 4 + 1, period % 4 * 3 + 1, 1)
        case "month":
            return datetime(period // 12 + 1, period % 12 + 1, 1)
        case "week":
            return datetime.fromordinal(period * 7 + 1)
        case "day":
            return datetime.fromordinal(period + 1)
        case "hour":
            return datetime.fromordinal(period // 24 + 1).replace(hour=period % 24)
    day, minute = divmod(period, 24 * 60)
    return datetime.fromordinal(day + 1).replace(hour=minute // 60, minute=minute % 60)
