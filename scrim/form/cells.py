"""What becomes of a cell under a column's declaration."""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Literal

from scrim.spec.columns import (
    DateColumn,
    DatetimeColumn,
    IdentifierColumn,
    IntegerColumn,
    LabelledColumn,
    OrdinalColumn,
    RealColumn,
)
from scrim.spec.columns.periods import period_of
from scrim.spec.schema import Attribute, Column

Verdict = Literal["fits", "missing", "undeclared", "unreadable", "below", "above", "rounded"]
MOST_REMEMBERED = 20_000

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_INFINITE = re.compile(r"[+-]?(?:inf|infinity)", re.IGNORECASE)


def reader_of(column: Column) -> Callable[[str | None], Verdict]:
    """A function that tells what becomes of a cell; verdicts of equal cells are remembered."""
    if isinstance(column, IdentifierColumn):
        return lambda text: "fits" if (text or "").strip() else "missing"
    judge = _judge_of(column)
    spellings = column.kind_of_spelling
    known: dict[str, Verdict] = {}

    def read(text: str | None) -> Verdict:
        text = text or ""
        verdict = known.get(text)
        if verdict is None:
            bare = text.strip()
            is_missing = text in spellings or (bare in spellings and not column.is_value(bare))
            verdict = "missing" if is_missing else judge(text)
            if len(known) < MOST_REMEMBERED:
                known[text] = verdict
        return verdict

    return read


def _judge_of(column: Attribute) -> Callable[[str], Verdict]:
    if isinstance(column, LabelledColumn | OrdinalColumn):
        return lambda text: (
            "fits" if column.is_value(text) or column.is_value(text.strip()) else "undeclared"
        )
    if isinstance(column, DateColumn | DatetimeColumn):
        return _judge_of_dates(column)
    return _judge_of_numbers(column)


def _judge_of_numbers(column: IntegerColumn | RealColumn) -> Callable[[str], Verdict]:
    lower, upper = Decimal(repr(column.lower)), Decimal(repr(column.upper))
    is_whole = isinstance(column, IntegerColumn)

    def judge(text: str) -> Verdict:
        text = text.strip()
        if _INFINITE.fullmatch(text):
            return "below" if text.startswith("-") else "above"
        if _NUMBER.fullmatch(text) is None:
            return "unreadable"
        number = Decimal(text)
        if number < lower:
            return "below"
        if number > upper:
            return "above"
        return "rounded" if is_whole and number != number.to_integral_value() else "fits"

    return judge


def _judge_of_dates(column: DateColumn | DatetimeColumn) -> Callable[[str], Verdict]:
    form, resolution = column.time_format, column.resolution

    def judge(text: str) -> Verdict:
        moment = form.read(text)
        if moment is None:
            return "unreadable"
        period = period_of(moment, resolution)
        if period < column.first_period:
            return "below"
        return "above" if period > column.last_period else "fits"

    return judge
