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
from scrim.spec.columns.missing import as_number
from scrim.spec.columns.periods import period_of
from scrim.spec.schema import Attribute, Column

Verdict = Literal["fits", "missing", "undeclared", "unreadable", "below", "above", "rounded"]
MOST_JUDGED = 20_000

_READABLE_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_INFINITE = re.compile(r"[+-]?(?:inf|infinity)", re.IGNORECASE)


def reader_of(column: Column) -> Callable[[str | None], Verdict]:
    """A function that tells what becomes of a cell; verdicts of equal cells are remembered."""
    if isinstance(column, IdentifierColumn):
        return lambda text: "fits" if (text or "").strip() else "missing"
    judge = _judge_of(column)
    known: dict[str, Verdict] = {}

    def read(text: str | None) -> Verdict:
        text = text or ""
        verdict = known.get(text)
        if verdict is None:
            verdict = judge(text)
            if len(known) < MOST_JUDGED:
                known[text] = verdict
        return verdict

    return read


def _judge_of(column: Attribute) -> Callable[[str], Verdict]:
    if isinstance(column, LabelledColumn | OrdinalColumn):
        return _judge_of_texts(column)
    spellings, numbers = column.kind_of_spelling, set[float | None]()
    if isinstance(column, DateColumn | DatetimeColumn):
        judge = _judge_of_dates(column)
    else:
        judge = _judge_of_numbers(column)
        # A number that means missing may be written in several ways.
        numbers = {as_number(text) for text in spellings} - {None}

    def judge_cell(text: str) -> Verdict:
        bare = text.strip()
        if text in spellings or bare in spellings or (numbers and as_number(bare) in numbers):
            return "missing"
        return judge(bare)

    return judge_cell


def _judge_of_texts(column: LabelledColumn | OrdinalColumn) -> Callable[[str], Verdict]:
    spellings = column.kind_of_spelling

    def judge(text: str) -> Verdict:
        # As it is written, then without surrounding spaces; a declared value is never missing.
        for each in dict.fromkeys([text, text.strip()]):
            if column.is_value(each) and (each or each == text):
                return "fits"
            if each in spellings and (each or each == text):
                return "missing"
        return "undeclared"

    return judge


def _judge_of_numbers(column: IntegerColumn | RealColumn) -> Callable[[str], Verdict]:
    lower, upper = Decimal(repr(column.lower)), Decimal(repr(column.upper))
    is_whole = isinstance(column, IntegerColumn)

    def judge(text: str) -> Verdict:
        if _INFINITE.fullmatch(text):
            return "below" if text.startswith("-") else "above"
        if _READABLE_NUMBER.fullmatch(text) is None:
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
