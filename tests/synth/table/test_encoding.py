import datetime
import decimal
import math
import re
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrim.spec.columns import IntegerColumn, RealColumn
from scrim.spec.schema import Column, Schema
from synth.table.chunk import Array, TableError
from synth.table.encoding import attribute_codec, codec_of, draw_values
from tests.synth.table.strategies import (
    LABELS,
    NUMBER_TEXTS,
    codes_of,
    integer_columns,
    real_columns,
    schemas,
)


def column_of(kind: str, **fields: Any) -> Column:
    return column_from({"name": "x", "type": kind, **fields})


def column_from(declared: dict[str, Any]) -> Column:
    extra = {"name": "y", "type": "categorical", "values": ["a"]}
    return Schema.model_validate({"columns": [declared, extra]}).columns[0]


def encode(column: Column, cells: Any, kind: Any = None) -> list[Any]:
    array = cells if isinstance(cells, pa.Array) else pa.array(cells, kind or pa.string())
    return list(codec_of(column).encode(array).tolist())


# Categories


def test_exact_match_comes_first_then_trimmed_then_other() -> None:
    column = column_of("categorical", values=["a", " a", "b"])
    assert encode(column, ["a", " a", "a ", "  a", " b\t", "c", "A", " "]) == [
        0,
        1,
        0,
        0,
        2,
        3,
        3,
        3,
    ]


def test_missing_is_one_past_the_labels() -> None:
    assert encode(column_of("categorical", values=["a"]), ["a", None, "", "zz"]) == [0, 2, 2, 1]


def test_missing_is_other_where_the_column_is_not_nullable() -> None:
    column = column_of("categorical", values=["u", "a"], other="u", nullable=False)
    assert encode(column, ["a", None, "", "zz"]) == [1, 0, 0, 0]


@pytest.mark.parametrize(
    ("fields", "missing"), [({"values": ["a", ""]}, 3), ({"values": ["a"], "other": ""}, 2)]
)
def test_empty_text_is_a_value_where_it_is_declared(fields: dict[str, Any], missing: int) -> None:
    assert encode(column_of("categorical", **fields), ["", None, "  "]) == [1, missing, 1]


@pytest.mark.parametrize(
    ("size", "dtype"), [(254, np.uint8), (255, np.uint16), (65534, np.uint16), (65535, np.uint32)]
)
def test_codes_have_the_smallest_type(size: int, dtype: type) -> None:
    column = column_of("categorical", values=[str(i) for i in range(size)])
    codes = codec_of(column).encode(pa.array(["0", None]))
    assert codes.dtype == dtype
    assert codes.tolist() == [0, size + 1]


# Numbers

_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|inf|infinity)", re.I | re.A)


def number_in(text: str | None) -> float:
    """What a cell says, one character at a time and without Arrow."""
    stripped = "" if text is None else text.strip()
    return float(stripped) if _NUMBER.fullmatch(stripped) else math.nan


@given(integer_columns("x"), st.lists(st.none() | NUMBER_TEXTS, max_size=8))
def test_integers_follow_the_rules(declared: dict[str, Any], cells: list[str | None]) -> None:
    column = column_from(declared)
    assert isinstance(column, IntegerColumn)
    expected = []
    for number in map(number_in, cells):
        if math.isnan(number):
            expected.append(column.upper - column.lower + 1 if column.nullable else 0)
        else:
            expected.append(round(min(max(number, column.lower), column.upper)) - column.lower)
    assert encode(column, cells) == expected


@given(real_columns("x"), st.lists(st.none() | NUMBER_TEXTS, max_size=8))
def test_reals_follow_the_rules(declared: dict[str, Any], cells: list[str | None]) -> None:
    column = column_from(declared)
    assert isinstance(column, RealColumn)
    expected = []
    for number in map(number_in, cells):
        if math.isnan(number):
            number = math.nan if column.nullable else column.lower
        else:
            number = min(max(number, column.lower), column.upper)
        expected.append((number + 0.0).hex())
    assert [x.hex() for x in encode(column, cells)] == expected


def test_integers_are_clamped_and_then_rounded() -> None:
    column = column_of("integer", lower=-5, upper=250)
    cells = [
        "-5",
        "-5.4",
        "249.6",
        " +7.2 ",
        "1e2",
        "inf",
        "-inf",
        "1" + "0" * 400,
        "nan",
        "x",
        None,
    ]
    assert encode(column, cells) == [0, 0, 255, 12, 105, 255, 0, 255, 256, 256, 256]
    assert codec_of(column).dtype == np.uint16


def test_the_widest_integers_are_exact() -> None:
    column = column_of("integer", lower=-(2**53), upper=2**53)
    assert encode(column, [str(2**53 - 1), str(-(2**53) + 1), None]) == [2**54 - 1, 1, 2**54 + 1]
    assert encode(column, [2**53 - 1, 2**63 - 1], pa.int64()) == [2**54 - 1, 2**54]


def test_missing_numbers_are_lower_where_the_column_is_not_nullable() -> None:
    assert encode(column_of("integer", lower=3, upper=9, nullable=False), ["x", None]) == [0, 0]
    assert encode(column_of("real", lower=3.0, upper=9.0, nullable=False), ["nan", None]) == [3, 3]


def test_zero_has_no_sign() -> None:
    codes = codec_of(column_of("real", lower=-0.0, upper=1.0)).encode(pa.array(["-0.0", "-7"]))
    assert not np.signbit(codes).any()


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("categorical", {"values": ["7", " x", "x", "NA", "nan"]}),
        ("integer", {"lower": -9, "upper": 99}),
        ("real", {"lower": -9.0, "upper": 99.0}),
        ("identifier", {}),
    ],
)
@given(cells=st.lists(st.none() | NUMBER_TEXTS | LABELS, min_size=1, max_size=6))
def test_a_cell_never_depends_on_its_neighbours(
    kind: str, fields: dict[str, Any], cells: list[str | None]
) -> None:
    codec = codec_of(column_of(kind, **fields))
    alone = [codec.encode(pa.array([cell], pa.string())).tobytes() for cell in cells]
    assert codec.encode(pa.array(cells, pa.string())).tobytes() == b"".join(alone)


def test_every_missing_real_has_the_same_bits() -> None:
    signalling = np.array([0x7FF0000000000001, 0xFFF8000000000000], np.uint64).view(np.float64)
    codec = codec_of(column_of("real", lower=0.0, upper=1.0))
    for cells in (pa.array(signalling), pa.array(["nan", "-nan"]), pa.array(["-nan", "x"])):
        assert codec.encode(cells).tobytes() == np.array([np.nan, np.nan]).tobytes()


# Identifiers


def test_identifiers_are_digests_of_their_trimmed_text() -> None:
    digests = codec_of(column_of("identifier")).encode(pa.array(["7", " 7", "é", None, "", "7"]))
    expected = [blake2b(text.encode(), digest_size=16).digest() for text in ("7", "7", "é")]
    assert [bytes(d) for d in digests] == [*expected, bytes(16), bytes(16), expected[0]]
    assert digests.dtype == np.dtype("V16")


# Types of Parquet columns

DATE = datetime.date(2020, 1, 2)
TEXT_VARIANTS = [
    (pa.array([7, None], pa.int8()), ["7", None]),
    (pa.array([2**64 - 1], pa.uint64()), [str(2**64 - 1)]),
    (pa.array([7.0, 7.5, -0.0, 1e15, math.nan]), ["7", "7.5", "0", "1000000000000000", None]),
    (pa.array([7.0, 0.1], pa.float32()), ["7", "0.1"]),
    (pa.array([np.float16(7.0)], pa.float16()), ["7"]),
    (pa.array([True, False, None]), ["true", "false", None]),
    (pa.array([DATE]), ["2020-01-02"]),
    (pa.array([DATE], pa.date64()), ["2020-01-02"]),
    (pa.array([datetime.datetime(2020, 1, 2)], pa.timestamp("ns")), ["2020-01-02"]),
    (pa.array([datetime.datetime(2020, 1, 2, 3)], pa.timestamp("s")), ["2020-01-02 03:00:00"]),
    (pa.array([decimal.Decimal("7.00"), decimal.Decimal("700.50")]), ["7", "700.5"]),
    (pa.array([decimal.Decimal("700")]), ["700"]),
    (pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
    (pa.array([7, 8, 7]).dictionary_encode(), ["7", "8", "7"]),
    (pa.array(["a"], pa.large_string()), ["a"]),
    (pa.array(["a"], pa.string_view()), ["a"]),
    (pa.array(["é".encode()]), ["é"]),
    (pa.nulls(2), [None, None]),
]


@pytest.mark.parametrize(
    ("cells", "texts"), TEXT_VARIANTS, ids=lambda v: str(getattr(v, "type", ""))
)
def test_categories_come_from_every_flat_type(cells: Any, texts: list[str | None]) -> None:
    labels = sorted({text for text in texts if text is not None}) or ["a"]
    column = column_of("categorical", values=labels)
    assert encode(column, cells) == encode(column, texts)
    assert max(encode(column, cells)) != len(labels), "no cell is `other`"


NUMBER_VARIANTS = [
    (pa.array(["1.5", "+2", "x"]), [1.5, 2.0, math.nan]),
    (pa.array(["1.5", "+2", "x"]).dictionary_encode(), [1.5, 2.0, math.nan]),
    (pa.array([1, None], pa.uint8()), [1.0, math.nan]),
    (pa.array([2**64 - 1], pa.uint64()), [100.0]),
    (pa.array([1.5, math.inf, math.nan], pa.float32()), [1.5, 100.0, math.nan]),
    (pa.array([decimal.Decimal("7.10")]), [7.1]),
    (pa.array([True, False]), [1.0, 0.0]),
    (pa.nulls(1), [math.nan]),
]


@pytest.mark.parametrize(("cells", "numbers"), NUMBER_VARIANTS)
def test_numbers_come_from_every_flat_type(cells: Any, numbers: list[float]) -> None:
    encoded = encode(column_of("real", lower=-100.0, upper=100.0), cells)
    assert np.array_equal(encoded, numbers, equal_nan=True)


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([[1]]),
        pa.array([{"CANARY-7f3a": 1}]),
        pa.array([datetime.timedelta(1)]),
        pa.array([datetime.datetime(2020, 1, 2)], pa.timestamp("us", "UTC")),
    ],
    ids=["list", "struct", "duration", "zoned"],
)
@pytest.mark.parametrize("kind", ["categorical", "real", "identifier"])
def test_other_types_are_refused_by_name_of_the_column(cells: Any, kind: str) -> None:
    fields: dict[str, dict[str, Any]] = {
        "categorical": {"values": ["a"]},
        "real": {"lower": 0.0, "upper": 1.0},
    }
    with pytest.raises(TableError, match="column 'x' holds") as caught:
        encode(column_of(kind, **fields.get(kind, {})), cells)
    assert "CANARY" not in str(caught.value)


def test_text_that_is_not_utf8_is_refused() -> None:
    broken = pa.array([b"CANARY-7f3a\xff"]).view(pa.string())
    for kind in (broken, broken.view(pa.binary())):
        with pytest.raises(TableError, match="UTF-8") as caught:
            encode(column_of("categorical", values=["a"]), kind)
        assert caught.value.__context__ is None


# Bins


def bin_by_hand(value: float, edges: tuple[float, ...]) -> int:
    inside = [i for i, start in enumerate(edges[:-1]) if start <= value]
    return inside[-1]


@given(st.data(), st.sampled_from([integer_columns, real_columns]))
def test_bins_are_half_open_and_the_last_is_closed(data: st.DataObject, columns: Any) -> None:
    declared = data.draw(columns("x"))
    column = column_from(declared)
    assert isinstance(column, IntegerColumn | RealColumn)
    numbers = data.draw(
        st.lists(st.sampled_from([*column.edges, column.lower, column.upper]), max_size=5)
    )
    whole = isinstance(column, IntegerColumn)
    cells = [str(int(x)) if whole else repr(x) for x in numbers]
    codec = attribute_codec(column)
    codes = codec.discretise(codec.encode(pa.array([*cells, None], pa.string())))
    missing = len(column.edges) - 1 if column.nullable else bin_by_hand(column.lower, column.edges)
    assert codes.tolist() == [*(bin_by_hand(x, column.edges) for x in numbers), missing]
    assert codes.dtype == np.uint8


@pytest.mark.parametrize("upper", [100, 70_000, 2**40])
def test_integer_bins_of_every_stored_width(upper: int) -> None:
    column = column_of("integer", lower=0, upper=upper, bins={"edges": [0, 1, 50, upper]})
    assert isinstance(column, IntegerColumn)
    codec = attribute_codec(column)
    stored = codec.encode(pa.array([0, 1, 49, 50, upper, None], pa.int64()))
    assert codec.discretise(stored).tolist() == [0, 1, 1, 2, 2, 3]


# Drawing

RNG = np.random.default_rng


@given(st.data())
def test_drawn_values_stay_in_their_bins(data: st.DataObject) -> None:
    schema = data.draw(schemas(identifiers=True))
    codes = data.draw(codes_of(schema, rows=data.draw(st.integers(0, 6))))
    chunk = draw_values(schema, codes, RNG(data.draw(st.integers(0, 99))))
    assert list(chunk) == [column.name for column in schema.columns]
    for column in schema.attributes:
        stored = chunk[column.name]
        codec = attribute_codec(column)
        assert stored.dtype == codec.dtype
        assert codec.discretise(stored).tolist() == codes[column.name].tolist()
        if isinstance(column, RealColumn):
            assert np.all(np.isnan(stored) | ((stored >= column.lower) & (stored <= column.upper)))


def draw_column(column: Column, codes: list[int], seed: int = 0) -> Array:
    schema = Schema(columns=[column])
    return draw_values(schema, {"x": np.array(codes)}, RNG(seed))["x"]


def test_every_whole_number_of_a_bin_is_drawn_equally_often() -> None:
    column = column_of("integer", lower=10, upper=14, bins={"edges": [10, 12, 14]})
    times = np.bincount(draw_column(column, [0] * 3000 + [1] * 3000))
    # Bins are {10, 11} and {12, 13, 14}; six standard deviations of a count are below 170.
    assert np.all(np.abs(times - [1500, 1500, 1000, 1000, 1000]) < 170)


def test_drawn_reals_have_the_declared_digits() -> None:
    column = column_of("real", lower=0.0, upper=1.0, decimals=1, bins={"edges": [0.0, 0.29, 1.0]})
    drawn = draw_column(column, [0] * 50 + [1] * 50 + [2])
    assert set(drawn[:50]) == {0.0, 0.1, 0.2}
    assert set(drawn[50:100]) == {k / 10 for k in range(3, 11)}
    assert np.isnan(drawn[100])


@pytest.mark.parametrize("code", [-1, 3])
def test_codes_outside_the_column_are_refused(code: int) -> None:
    column = column_of("integer", lower=0, upper=9, bins={"count": 2})
    with pytest.raises(TableError, match="column 'x' has codes outside 0 to 2"):
        draw_column(column, [code])


def test_drawing_needs_bins_and_codes() -> None:
    with pytest.raises(TableError, match="column 'x' has no bins"):
        draw_column(column_of("real", lower=0.0, upper=1.0), [0])
    with pytest.raises(TableError, match="column 'x' has no codes"):
        draw_values(
            Schema(columns=[column_of("categorical", values=["a"])]), {"z": np.array([0])}, RNG(0)
        )
    with pytest.raises(TableError, match="same length"):
        draw_values(Schema(columns=[column_of("categorical", values=["a"])]), {}, RNG(0))
