"""Every type of column, from cells as people write them to released cells and back."""

import io
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrim.spec.columns.periods import Resolution, period_of, start_of
from scrim.spec.schema import Attribute, Schema
from synth.missing import kinds_in, number_of_kind
from synth.table import Table, align, draw_values, read_csv, read_parquet, write_csv, write_parquet
from synth.table.encoding import attribute_codec
from synth.table.moments import moments_of, periods_in
from tests.scrim.column_types import CSV, RELEASED, SCHEMA

CELLS = sorted({cell for line in CSV.splitlines()[1:] for cell in line.split(",")})
COLUMNS = {column.name: column for column in SCHEMA.attributes}
RESOLUTIONS: list[Resolution] = ["year", "quarter", "month", "week", "day", "hour", "minute"]


def read(text: str) -> dict[str, Any]:
    [chunk] = list(read_csv(io.BytesIO(text.encode()), SCHEMA))
    return dict(chunk)


def written(chunk: Any, schema: Schema = SCHEMA) -> str:
    file = io.BytesIO()
    write_csv(file, schema, [chunk])
    return file.getvalue().decode()


class TestFiles:
    def test_cells_are_mapped_into_the_declaration(self) -> None:
        assert written(read(CSV)) == RELEASED

    def test_released_cells_are_read_as_what_they_were(self) -> None:
        first, again = read(CSV), read(RELEASED)
        for name, stored in first.items():
            np.testing.assert_array_equal(again[name], stored, name)

    def test_parquet_has_real_types_and_a_column_of_kinds(self) -> None:
        file = io.BytesIO()
        write_parquet(file, SCHEMA, [read(CSV)])
        table = pq.read_table(file)
        types = {field.name: field.type for field in table.schema}
        assert types["born"] == pa.date32() and types["admitted"] == pa.timestamp("us")
        assert types["smoker"] == pa.bool_() and types["pressure"] == pa.int64()
        assert table["born"].to_pylist()[:2] == [
            datetime(1969, 5, 1).date(),
            datetime(1999, 12, 1).date(),
        ]
        assert table["cost.missing"].to_pylist() == [None, None, "refused", "unknown", None]
        assert "admitted.missing" not in types

    @pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
    @pytest.mark.parametrize("zone", [None, "Asia/Tokyo"])
    def test_real_types_are_read(self, unit: str, zone: str | None) -> None:
        moments = [datetime(2024, 5, 17, 14, 45), None, datetime(1700, 1, 1), datetime(2090, 1, 1)]
        days = [None if each is None else each.date() for each in moments]
        texts = ["", "A00", "x", "C50"]
        times = pa.array(moments, pa.timestamp(unit)).cast(pa.timestamp(unit, zone))
        table = pa.table(
            {name: pa.array(texts) for name in COLUMNS}
            | {"born": pa.array(days, pa.date32()), "admitted": times}
            | {"smoker": pa.array([True, False, None, True])}
            | {
                "pressure": pa.array([-9, 999, 300, None]),
                "cost": pa.array([-9.0, 999.0, 1.0, None]),
            }
        )
        file = io.BytesIO()
        pq.write_table(table, file)
        [chunk] = list(read_parquet(file, SCHEMA))
        lines = written(chunk).splitlines()[1:]
        assert lines[0].startswith("") and lines[0].split(",")[2:] == [
            "yes", "-9", "-9", "2020-12-01", "17.05.2024 14:00", "",
        ]  # fmt: skip
        assert lines[1].split(",")[2:] == ["no", "999", "999", "", "", "A00"]
        assert lines[2].split(",")[2:7] == ["", "200", "1.00", "1940-01-01", "01.01.2024 00:00"]
        assert lines[3].split(",")[2:7] == ["yes", "", "", "2020-12-01", "31.12.2024 23:00"]


@pytest.mark.parametrize("name", COLUMNS)
class TestCodecs:
    @given(
        cells=st.lists(
            st.none() | st.sampled_from(CELLS) | st.text(max_size=8), min_size=1, max_size=6
        )
    )
    def test_a_cell_never_depends_on_its_neighbours(
        self, name: str, cells: list[str | None]
    ) -> None:
        codec = attribute_codec(COLUMNS[name])
        alone = [codec.encode(pa.array([cell], pa.string())).tobytes() for cell in cells]
        assert codec.encode(pa.array(cells, pa.string())).tobytes() == b"".join(alone)

    def test_every_code_survives_writing_and_reading(self, name: str) -> None:
        column = COLUMNS[name]
        alone = SCHEMA.model_copy(update={"columns": [column]})
        codes = np.repeat(np.arange(column.size), 5)
        chunk = draw_values(alone, {name: codes}, np.random.default_rng(0))
        [again] = list(read_csv(io.BytesIO(written(chunk, alone).encode()), alone))
        np.testing.assert_array_equal(again[name], chunk[name])
        assert next(Table(alone, [again]).codes([name]))[name].tolist() == codes.tolist()

    def test_numbers_are_converted_back(self, name: str) -> None:
        column = COLUMNS[name]
        codec = attribute_codec(column)
        stored = codec.draw(np.repeat(np.arange(column.size), 5), np.random.default_rng(0))
        again = codec.from_numbers(codec.numbers(stored))
        assert again.dtype == stored.dtype
        np.testing.assert_array_equal(codec.numbers(again), codec.numbers(stored))
        assert {int(kind) for kind in codec.kinds(stored)} == set(range(len(column.kinds) + 1))

    def test_kinds_come_after_the_values(self, name: str) -> None:
        labels = COLUMNS[name].code_labels
        kinds = COLUMNS[name].kinds
        assert len(labels) == COLUMNS[name].size
        start = labels.index(kinds[0])
        assert tuple(labels[start : start + len(kinds)]) == kinds


def column_of(kind: str, **fields: Any) -> Attribute:
    declared = {"columns": [{"name": "x", "type": kind, **fields}]}
    return Schema.model_validate(declared).attributes[0]


def encoded(column: Attribute, *cells: str | None) -> list[Any]:
    return list(attribute_codec(column).encode(pa.array(cells, pa.string())).tolist())


def test_a_huge_number_is_clamped_and_not_read_as_a_kind() -> None:
    column = column_of("real", lower=-5, upper=5, missing={"NA": "refused"})
    [low, kind] = encoded(column, f"{3 * number_of_kind(1):.0f}", "NA")
    assert low == -5 and kinds_in(np.array([low, kind]), 2).tolist() == [0, 2]


def test_missing_becomes_the_lowest_or_other_where_it_is_not_kept() -> None:
    fields = {"lower": "2020-01-01", "upper": "2020-12-31", "missing": {"NA": "refused"}}
    assert encoded(column_of("date", nullable=False, **fields), "NA", None, "x") == [0, 0, 0]
    values = {"values": ["low", "high"], "nullable": False, "missing": ["NA"]}
    assert encoded(column_of("ordinal", **values), "NA", None, "x") == [2, 2, 2]
    assert encoded(column_of("ordinal", **values, other="high"), "NA", None, "x") == [1, 1, 1]
    assert encoded(column_of("boolean", nullable=False), "true", None, "x") == [0, 1, 1]


def test_a_declared_value_is_never_missing() -> None:
    assert encoded(
        column_of("categorical", values=["NA", "b"], missing=["NA", "?"]), "NA", "?"
    ) == [0, 3]


def test_codes_of_a_group_are_drawn_by_their_public_shares() -> None:
    fields: dict[str, Any] = {"values": ["A1", "A2", "A3", "B1"], "levels": [1], "thin_below": 1}
    codec = attribute_codec(column_of("code", **fields, reference={"A1": 3, "A3": 1, "B1": 9}))
    assert codec.column.code_labels == ["A*", "B1", "other", "missing"]
    drawn = codec.draw(np.zeros(20_000, np.int64), np.random.default_rng(0))
    shares = np.bincount(drawn, minlength=4) / len(drawn)
    np.testing.assert_allclose(shares, [0.75, 0, 0.25, 0], atol=0.02)
    uniform = attribute_codec(column_of("code", **fields))
    drawn = uniform.from_numbers(np.zeros(20_000))
    np.testing.assert_allclose(np.bincount(drawn)[:3] / len(drawn), 1 / 3, atol=0.02)


@given(moment=st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 30)))
@pytest.mark.parametrize("resolution", RESOLUTIONS)
def test_periods_of_arrow_and_of_texts_are_the_same(
    resolution: Resolution, moment: datetime
) -> None:
    period = period_of(moment, resolution)
    start = start_of(period, resolution)
    assert start <= moment and period_of(start, resolution) == period
    assert period_of(start - timedelta(minutes=1), resolution) == period - 1 if period else True
    [found], [missing] = periods_in(pa.array([moment], pa.timestamp("us")), resolution)
    assert (found, missing) == (period, False)
    [first] = moments_of(np.array([period]), resolution).astype("datetime64[us]").tolist()
    assert first == start


def test_public_tables_of_all_types_are_aligned() -> None:
    public = Table(SCHEMA, [read(CSV)])
    [same] = list(align(public, SCHEMA).chunks())
    for name, stored in read(CSV).items():
        np.testing.assert_array_equal(same[name], stored, name)
    changed: dict[str, Any] = {
        "smoker": {"name": "smoker", "type": "categorical", "values": ["no", "yes"]},
        "born": {"name": "born", "type": "datetime", "lower": "1960-01-01", "upper": "2000-01-01"},
        "ward": {
            "name": "ward",
            "type": "ordinal",
            "values": ["west"],
            "missing": {"-": "unknown"},
        },
    }
    schema = Schema.model_validate({"columns": list(changed.values())})
    [chunk] = list(align(public, schema).chunks())
    assert written(chunk, schema).splitlines()[1:] == [
        "yes,1969-05-01T00:00,other",
        "no,1999-12-01T00:00,west",
        ",,",
        ",,-",
        ",1960-01-01T00:00,west",
    ]
