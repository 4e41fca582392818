"""Random schemas, cells and chunks, and shared code of the table tests."""

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
from hypothesis import strategies as st

from scrim.spec.schema import Schema
from synth.table.chunk import DIGEST, Array, Chunk

CANARY = "CANARY-7f3a"

LABELS = st.one_of(
    st.sampled_from(
        ["", " ", "7", "007", "7.0", "NA", "null", "nan", "true", '"', '""', ",", "\n"]
    ),
    st.sampled_from(["\r\n", "\r", "\t", " x", "x ", "x", "\ufeff", "\x00", "é", "🙂", "\u2028"]),
    st.text(max_size=6),
)
"""Text of a label or a cell, with everything that is difficult in CSV."""

NUMBER_TEXTS = st.one_of(
    st.sampled_from(["", " ", "nan", "NaN", "-nan", "inf", "-inf", "+Infinity", "1e400", "-1e400"]),
    st.sampled_from(
        ["+5", " 5 ", "\t5", "5\u00a0", "005", "5.", ".5", "5e0", "5E+0", "1_0", "0x5"]
    ),
    st.sampled_from(
        ["+-5", "5 5", "5,0", "٥", "e5", ".", "-", "-0", "-0.0", "1e-400", "abc", "5f"]
    ),
    st.integers().map(str),
    st.integers(-(10**400), 10**400).map(str),
    st.floats().map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str),
    st.text(alphabet="0123456789+-.eE infax_\t", max_size=8),
)
"""Text that a number's cell may hold."""

NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters=[chr(code) for code in range(32)]),
    min_size=1,
    max_size=8,
)


@st.composite
def categorical_columns(draw: st.DrawFn, name: str) -> dict[str, Any]:
    values = draw(st.lists(LABELS, min_size=1, max_size=5, unique=True))
    other = draw(st.one_of(st.just("other"), LABELS))
    return _column(draw, name, "categorical", values=values, other=other)


@st.composite
def integer_columns(draw: st.DrawFn, name: str) -> dict[str, Any]:
    bounds = st.one_of(st.integers(-20, 300), st.integers(-(2**53), 2**53))
    lower, upper = sorted((draw(bounds), draw(bounds)))
    bins = {"count": draw(st.integers(1, min(9, upper - lower + 1)))}
    return _column(draw, name, "integer", lower=lower, upper=upper, bins=bins)


@st.composite
def real_columns(draw: st.DrawFn, name: str) -> dict[str, Any]:
    numbers = st.one_of(st.integers(-50, 50).map(float), st.floats(-1e150, 1e150))
    lower, upper = draw(
        st.tuples(numbers, numbers).map(sorted).filter(lambda pair: _is_wide(pair[0], pair[1]))
    )
    bins = {"count": draw(st.integers(1, 9))}
    # The schema refuses digits so few that a bin holds no such number.
    widest = 0 if upper - lower > 20 else 3
    enough = upper - lower > 1e-2
    decimals = draw(st.one_of(st.none(), st.integers(widest, 15))) if enough else None
    return _column(draw, name, "real", lower=lower, upper=upper, decimals=decimals, bins=bins)


@st.composite
def ordinal_columns(draw: st.DrawFn, name: str) -> dict[str, Any]:
    return draw(categorical_columns(name)) | {"type": "ordinal"}


@st.composite
def boolean_columns(draw: st.DrawFn, name: str) -> dict[str, Any]:
    spellings = draw(st.lists(LABELS, min_size=2, max_size=4, unique=True))
    number = draw(st.integers(1, len(spellings) - 1))
    return _column(draw, name, "boolean", true=spellings[:number], false=spellings[number:])


@st.composite
def code_columns(draw: st.DrawFn, name: str) -> dict[str, Any]:
    codes = draw(st.lists(st.text("AB12", min_size=1, max_size=3), min_size=1, unique=True))
    levels = draw(st.none() | st.just([1]) | st.just([1, 2]))
    shares = draw(st.none() | st.just({code: 1.0 + i for i, code in enumerate(codes)}))
    fields = {"values": codes, "levels": levels, "reference": shares}
    return _column(draw, name, "code", **fields, thin_below=draw(st.floats(0, 1)))


@st.composite
def time_columns(draw: st.DrawFn, name: str) -> dict[str, Any]:
    moments = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(lambda m: m.isoformat())
    lower, upper = sorted((draw(moments), draw(moments)))
    kind = draw(st.sampled_from(["date", "datetime"]))
    finer = [] if kind == "date" else ["hour", "minute"]
    resolution = draw(st.sampled_from(["year", "quarter", "month", "week", "day", *finer]))
    shape = draw(st.none() | st.sampled_from(["%d.%m.%Y %H:%M", "%I.%M%p on %B %d, %Y"]))
    fields = {"lower": lower, "upper": upper, "resolution": resolution, "bins": {"count": 1}}
    return _column(draw, name, kind, **fields, format=shape)


def _is_wide(lower: float, upper: float) -> bool:
    return upper - lower > 1e-9 * max(abs(lower), abs(upper), 1e-300)


def _column(draw: st.DrawFn, name: str, kind: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": draw(st.booleans()), **fields}


MISSING: list[Any] = [
    None,
    ["", "(missing)"],
    ["(missing)", "-9.5e200"],
    {"(refused)": "refused", "=unknown": "unknown"},
]
"""Declarations of missing values; no label is as long."""


@st.composite
def schemas(draw: st.DrawFn, *, identifiers: bool = False, kinds: bool = True) -> Schema:
    """A schema of one to four attributes, with hard names, and an identifier if asked for."""
    names = draw(st.lists(NAMES, min_size=2, max_size=5, unique=True))
    types = (
        *(categorical_columns, integer_columns, real_columns),
        *(ordinal_columns, boolean_columns, code_columns, time_columns),
    )
    missing = st.sampled_from(MISSING if kinds else MISSING[:3])
    columns = [
        draw(draw(st.sampled_from(types))(name)) | {"missing": draw(missing)} for name in names[1:]
    ]
    if identifiers:
        columns.append({"name": names[0], "type": "identifier"})
    return Schema.model_validate({"columns": columns})


@st.composite
def codes_of(draw: st.DrawFn, schema: Schema, *, rows: int) -> dict[str, Array]:
    """Random discrete codes of every attribute."""
    return {
        column.name: np.array(
            draw(st.lists(st.integers(0, column.size - 1), min_size=rows, max_size=rows)), np.int64
        )
        for column in schema.attributes
    }


def same_chunks(left: Sequence[Chunk], right: Sequence[Chunk]) -> bool:
    """Whether two sequences of chunks hold the same rows, bit for bit, however they are cut."""
    return rows_of(left) == rows_of(right)


def rows_of(chunks: Sequence[Chunk]) -> list[tuple[bytes | int | float | None, ...]]:
    """The rows of the chunks as tuples, with NaN as None."""
    rows: list[tuple[bytes | int | float | None, ...]] = []
    for chunk in chunks:
        columns = [_scalars(chunk[name]) for name in sorted(chunk)]
        rows.extend(zip(*columns, strict=True))
    return rows


def _scalars(array: Array) -> list[bytes | int | float | None]:
    if array.dtype == DIGEST:
        return [bytes(value) for value in array]
    if array.dtype == np.float64:
        return [None if math.isnan(x) else x.hex() for x in array.tolist()]
    return list(array.tolist())


def assert_no_canary(error: BaseException) -> None:
    """Check that no message or argument of the error, or of a chained one, contains the canary."""
    assert error.__cause__ is None
    assert error.__context__ is None
    assert CANARY not in str(error)
    assert CANARY not in repr(error)
    assert CANARY not in repr(vars(error))
