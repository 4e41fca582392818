"""What a column of each type declares, and what is refused."""

import json
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from scrim.spec.columns import CodeColumn
from scrim.spec.columns.periods import period_of, start_of
from scrim.spec.columns.time_format import TimeFormat
from scrim.spec.errors import SpecError
from scrim.spec.schema import Schema
from scrim.spec.two_level import TwoLevelSchema
from scrim.spec.workload.ranges import Ranges
from tests.scrim.column_types import DECLARED, SCHEMA

DATE = {"name": "x", "type": "date", "lower": "2020-01-01", "upper": "2020-12-31"}
SHARES = {"A1": 50, "A2": 1, "B10": 6, "B11": 6, "C": 37}
CODE = {"name": "x", "type": "code"}
REFUSED = [
    ({"name": "x", "type": "text"}, "Free text cannot be released"),
    ({**DATE, "lower": "yesterday"}, '"lower" must be a date in ISO 8601'),
    ({**DATE, "lower": "2021-01-01"}, '"lower" must not be later than "upper"'),
    ({**DATE, "resolution": "hour"}, "'year', 'quarter', 'month', 'week' or 'day'"),
    ({**DATE, "format": "%Y-%m"}, '"format" does not determine the day'),
    ({**DATE, "format": "%Y-%m-%d %Z"}, "the directive %Z"),
    ({**DATE, "format": "%d.%d.%Y"}, "must not repeat a directive"),
    ({**DATE, "lower": "1900-01-01", "format": "%d.%m.%y"}, "%y, which means 1969 to 2068"),
    ({**DATE, "bins": {"edges": ["2020-01-01", "soon"]}}, "the edges must be dates in ISO 8601"),
    ({**DATE, "bins": {"edges": ["2020-01-01", "2020-06-01"]}}, "the first edge must equal"),
    ({**DATE, "bins": {"width": 7, "count": 2}}, "exactly one of width, count and edges"),
    ({"name": "x", "type": "ordinal", "values": ["a", "a"]}, "values must be distinct"),
    ({"name": "x", "type": "boolean", "true": ["1"], "false": ["1"]}, "true and false must be distinct"),
    ({**CODE}, "give either values or code_list"),
    ({**CODE, "values": ["A1"], "levels": [2, 1]}, "must increase"),
    ({**CODE, "values": ["A1"], "levels": {"B1": "B"}}, "'B1', which is not one of the codes"),
    ({**CODE, "values": ["A1"], "reference": {"A1": 0}}, "must not all be 0"),
    (
        {"name": "x", "type": "integer", "lower": 0, "upper": 999, "missing": {"99": "a", "98": "b"}},
        "needs a spelling that is not a value",
    ),
    (
        {"name": "x", "type": "real", "lower": -1e301, "upper": 0, "missing": {"NA": "refused"}},
        'needs "lower" to be at least',
    ),
    (
        {"name": "x", "type": "categorical", "values": ["refused"], "missing": {"NA": "refused"}},
        "must have other names than the values",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("column", "problem"), REFUSED)
def test_refused(column: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Schema.model_validate({"columns": [column]})
    assert problem in str(caught.value)


def test_the_name_of_the_kinds_is_taken() -> None:
    one = {**DATE, "missing": {"NA": "refused"}}
    with pytest.raises(ValidationError, match=r"released as 'x\.missing'"):
        Schema.model_validate({"columns": [one, {**DATE, "name": "x.missing"}]})


def test_schemas_of_all_types_survive_json() -> None:
    again = Schema.model_validate_json(SCHEMA.model_dump_json())
    assert again == SCHEMA and again.sizes == SCHEMA.sizes


def test_unused_fields_do_not_change_the_json_of_a_schema() -> None:
    """Certificates hold its hash, and saved tables hold the text."""
    columns: list[dict[str, Any]] = [
        {"name": "c", "type": "categorical", "values": ["a"]},
        {"name": "i", "type": "integer", "lower": 0, "upper": 9, "bins": {"count": 2}},
        {"name": "r", "type": "real", "lower": 0, "upper": 1},
        {"name": "p", "type": "identifier"},
    ]
    bins = {"width": None, "count": 2, "edges": None}
    expected = [
        {**columns[0], "other": "other", "nullable": True},
        {"name": "i", "bins": bins, "nullable": True, "type": "integer", "lower": 0, "upper": 9},
        {"name": "r", "bins": None, "nullable": True, "type": "real", "lower": 0.0, "upper": 1.0}
        | {"decimals": None},
        columns[3],
    ]
    written = Schema.model_validate({"columns": columns}).model_dump_json()
    assert written == json.dumps({"columns": expected}, separators=(",", ":"))


def test_missing_of_a_schema_is_for_columns_without_their_own() -> None:
    columns = [DECLARED[0], {"name": "n", "type": "integer", "lower": 0, "upper": 9}]
    flat = Schema.model_validate({"missing": ["-"], "columns": columns})
    assert [column.spellings for column in flat.attributes] == [("", "NA", "?"), ("-",)]
    tables = {
        "groups": {"key": "h", "columns": columns},
        "individuals": {"group_key": "h", "columns": [{**columns[1], "name": "m"}]},
    }
    two = TwoLevelSchema.model_validate({"missing": ["-"], "max_group_size": 3, **tables})
    assert [c.spellings for c in two.linked.attributes] == [("", "NA", "?"), ("-",), ("-",)]


def test_a_value_is_missing_in_no_column_that_declares_it() -> None:
    column = {"name": "x", "type": "categorical", "values": ["-", "a"]}
    schema = Schema.model_validate({"missing": ["-", "?"], "columns": [column]})
    assert schema.attributes[0].missing == ["?"]


def test_the_column_that_cannot_have_the_kinds_of_a_schema_is_named() -> None:
    kinds = {"98": "refused", "99": "unknown"}
    column = {"name": "years", "type": "integer", "lower": 0, "upper": 120}
    with pytest.raises(ValidationError, match="column 'years': every kind"):
        Schema.model_validate({"missing": kinds, "columns": [column]})


@pytest.mark.parametrize(
    ("fields", "cells"),
    [
        ({}, ["A1", "A2", "B10", "B11", "C", "other"]),
        ({"levels": [1]}, ["A*", "B*", "C", "other"]),
        ({"levels": [1, 2]}, ["A1", "A2", "B1*", "C", "other"]),
        ({"levels": {"A1": "a", "A2": "a"}}, ["a", "B10", "B11", "C", "other"]),
        # A1 is common; A2 is alone in its group; B10 and B11 together are common at two characters.
        (
            {"levels": [1, 2], "thin_below": 0.1, "reference": SHARES},
            ["A1", "A2", "B1*", "C", "other"],
        ),
    ],
)  # fmt: skip
def test_thin_codes_are_measured_in_groups(fields: dict[str, Any], cells: list[str]) -> None:
    codes = ["A1", "A2", "B10", "B11", "C"]
    column = CodeColumn.model_validate({**CODE, "values": codes, **fields})
    assert list(column.labels) == cells and column.texts == (*codes, "other")
    assert [cells[cell][:1] for cell in column.cell_of_text] == [
        cells[column.cell_of_text[i]][:1] for i in range(6)
    ]


def test_a_code_list_holds_groups_and_shares() -> None:
    lines = [{"code": "1", "group": "I", "share": 1}, {"code": "2", "group": "I", "share": 1}]
    column = CodeColumn.model_validate({**CODE, "code_list": lines, "thin_below": 0.9})
    assert column.labels == ("I", "other") and column.shares == {"1": 1, "2": 1}


FORMATS = [
    *("%d.%m.%Y %H:%M", "%Y%m%d%H%M", "%m/%d/%y %I:%M %p", "%d %B %Y, %H.%M"),
    *("%Y/%j %H:%M", "%b %d %Y %H:%M"),
]


@given(moment=st.datetimes(datetime(1970, 1, 1), datetime(2068, 1, 1)))
@pytest.mark.parametrize("declared", [*FORMATS, None])
def test_formats_read_what_they_write(declared: str | None, moment: datetime) -> None:
    written = TimeFormat.of(declared, "minute", False)
    written.refuse_faults()
    start = start_of(period_of(moment, "minute"), "minute")
    assert written.read(written.write(start)) == start


@pytest.mark.parametrize(
    ("resolution", "declared", "text"),
    [("quarter", "%Y-Q%q", "2020-Q2"), ("week", "%G-W%V", "2020-W53"), ("year", "%Y", "2020")],
)
def test_formats_of_long_periods(resolution: Any, declared: str, text: str) -> None:
    long = TimeFormat.of(declared, resolution, True)
    long.refuse_faults()
    moment = long.read(text)
    assert moment is not None and long.write(moment) == text


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2020-02-30", None),
        ("2020-02-03T10:30+02:00", datetime(2020, 2, 3, 8, 30)),
        ("2020-02-03 10:30:59.25Z", datetime(2020, 2, 3, 10, 30, 59)),
        ("2020-02-03", datetime(2020, 2, 3)),
        ("0000-01-01", None),
        ("0001-01-01T00:00+09:00", None),
    ],
)
def test_iso(text: str, moment: datetime | None) -> None:
    assert TimeFormat.of(None, "minute", False).read(text) == moment


class TestRanges:
    @pytest.mark.parametrize(
        ("query", "problem"),
        [
            ({"pain": ["severe", "mild"]}, "must be in the declared order"),
            ({"pain": "awful"}, "no such value in its order"),
            (
                {"born": None},
                "several kinds of missing values; name one: missing, refused, unknown",
            ),
            (
                {"born": ["1930-01-01", "1950-01-01"]},
                "between its bounds 1940-01-01 and 2020-12-01",
            ),
            ({"born": [1, 2]}, "needs dates in ISO 8601"),
            ({"pressure": ["a", "b"]}, "holds numbers"),
        ],
    )
    def test_refused(self, query: dict[str, Any], problem: str) -> None:
        item = Ranges.model_validate({"type": "ranges", "queries": [query]})
        with pytest.raises(SpecError) as caught:
            item.expand(SCHEMA)
        assert problem in str(caught.value)


def test_kinds_of_a_schema_need_bounds_that_leave_room_for_them() -> None:
    column = {"name": "v", "type": "real", "lower": -1e305, "upper": 0.0}
    with pytest.raises(ValidationError, match='needs "lower" to be at least'):
        Schema.model_validate({"missing": {"NA": "na", "ref": "refused"}, "columns": [column]})
