"""Declared columns: which declarations are accepted, and the codes that follow from them."""

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from scrim.spec.columns import (
    LARGEST_INTEGER,
    MAX_CODES,
    STORED,
    Bins,
    CategoricalColumn,
    IntegerColumn,
    RealColumn,
)
from scrim.spec.schema import ADVICE, Schema
from scrim.spec.two_level import TwoLevelSchema
from tests.scrim.column_types import TYPES

EXAMPLE: dict[str, Any] = {
    "columns": [
        {"name": "sex", "type": "categorical", "values": ["F", "M"]},
        {"name": "age", "type": "integer", "lower": 0, "upper": 99, "bins": {"width": 10}},
        {
            "name": "income",
            "type": "real",
            "lower": 0,
            "upper": 500000,
            "bins": {"edges": [0, 1, 10000, 50000, 500000]},
        },
        {"name": "pid", "type": "identifier"},
    ]
}


def integer(lower: int, upper: int, **bins: Any) -> IntegerColumn:
    return IntegerColumn(
        name="x", type="integer", lower=lower, upper=upper, bins=Bins.model_validate(bins)
    )


def real(lower: float, upper: float, **bins: Any) -> RealColumn:
    return RealColumn(
        name="x", type="real", lower=lower, upper=upper, bins=Bins.model_validate(bins)
    )


def test_the_example_of_the_contract() -> None:
    schema = Schema.model_validate(EXAMPLE)
    assert [column.name for column in schema.attributes] == ["sex", "age", "income"]
    # F, M, other, missing; ten decades, missing; four bins, missing.
    assert [column.size for column in schema.attributes] == [4, 11, 5]


def test_json_and_back() -> None:
    schema = Schema.model_validate(EXAMPLE)
    assert Schema.model_validate_json(schema.model_dump_json()) == schema


def test_an_attribute_by_name() -> None:
    schema = Schema.model_validate(EXAMPLE)
    assert schema.attribute("age").name == "age"
    with pytest.raises(KeyError):
        schema.attribute("pid")


# Categories ---------------------------------------------------------------------------------------


@given(
    st.lists(st.text(max_size=5), min_size=1, max_size=6, unique=True),
    st.text(max_size=5),
    st.booleans(),
)
def test_every_category_has_one_code(values: list[str], other: str, nullable: bool) -> None:
    column = CategoricalColumn(
        name="x", type="categorical", values=values, other=other, nullable=nullable
    )
    assert list(column.labels[: len(values)]) == values
    assert column.labels.count(other) == 1
    assert column.size == len(set(values) | {other}) + nullable


def test_repeated_values_are_refused_without_repeating_them() -> None:
    with pytest.raises(ValidationError, match="items 2 and 4 are the same") as refused:
        CategoricalColumn(name="x", type="categorical", values=["a", "canary", "b", "canary"])
    assert "canary" not in str(refused.value)


# Whole numbers ------------------------------------------------------------------------------------


@st.composite
def integer_columns(draw: st.DrawFn) -> IntegerColumn:
    lower = draw(st.integers(-50, 50))
    upper = draw(st.integers(lower, lower + 60))
    if draw(st.booleans()):
        return integer(lower, upper, width=draw(st.integers(1, 70)))
    return integer(lower, upper, count=draw(st.integers(1, upper - lower + 1)))


@given(integer_columns())
def test_bins_of_whole_numbers_cover_each_number_once(column: IntegerColumn) -> None:
    edges = column.edges
    assert edges[0] == column.lower and edges[-1] == column.upper
    assert all(edge == int(edge) for edge in edges)
    starts = edges[:-1]
    # Half-open cells: each holds at least its own start; the last is closed.
    assert all(a < b for a, b in pairwise(starts)) and starts[-1] <= column.upper
    assert column.size == len(starts) + column.nullable


def test_a_width_cuts_whole_numbers_from_below() -> None:
    assert integer(0, 99, width=30).edges == (0, 30, 60, 90, 99)


def test_one_number_per_bin() -> None:
    assert integer(0, 2, width=1).edges == (0, 1, 2, 2)
    assert integer(7, 7, width=1).size == 2


def test_a_count_spreads_whole_numbers_evenly() -> None:
    assert integer(1, 10, count=4).edges == (1, 3, 6, 8, 10)


def test_the_widest_range_of_whole_numbers() -> None:
    column = integer(-LARGEST_INTEGER, LARGEST_INTEGER, count=1000)
    assert column.size == 1001 and column.edges[0] == -LARGEST_INTEGER


@pytest.mark.parametrize(
    ("lower", "upper", "bins", "message"),
    [
        (1, 0, {"width": 1}, '"lower" must not be larger than "upper"'),
        (0, 9, {"width": 2.5}, "whole number"),
        (0, 2 * MAX_CODES, {"width": 1}, "the width makes more than 100,000 bins"),
        (0, 9, {"count": 11}, "do not fit"),
        (0, 9, {"edges": [0, 4.5, 9]}, "whole numbers"),
        (0, 9, {"edges": [0, 5]}, "first edge"),
        (5, 5, {"edges": [5, 6]}, "width of 1"),
        (0, LARGEST_INTEGER + 1, {"count": 2}, "less than or equal"),
    ],
)
def test_refused_integer_columns(lower: int, upper: int, bins: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        integer(lower, upper, **bins)


# Real numbers -------------------------------------------------------------------------------------

tenths = st.integers(-1000, 1000).map(lambda number: number / 10)


@given(tenths, st.integers(1, 500), st.sampled_from([0.1, 0.2, 0.5, 0.7, 2.0]))
def test_widths_are_the_decimals_as_written(lower: float, tenths_above: int, width: float) -> None:
    upper = round(lower * 10 + tenths_above) / 10
    column = real(lower, upper, width=width)
    bins = math.ceil(tenths_above / round(width * 10))
    assert column.size == bins + 1
    expected = [(round(lower * 10) + i * round(width * 10)) / 10 for i in range(bins)]
    assert column.edges == (*expected, upper)


@given(st.floats(-1e6, 1e6, allow_subnormal=False), st.floats(1e-3, 1e6), st.integers(1, 100))
def test_a_count_cuts_real_numbers_evenly(lower: float, width: float, count: int) -> None:
    column = real(lower, lower + width, count=count)
    edges = column.edges
    assert len(edges) == count + 1 == column.size
    assert edges[0] == column.lower and edges[-1] == column.upper
    assert all(a < b for a, b in pairwise(edges))
    assert all(b - a == pytest.approx(width / count, rel=1e-3) for a, b in pairwise(edges))


def test_a_last_bin_may_be_narrower() -> None:
    assert real(0, 1, width=0.4).edges == (0, 0.4, 0.8, 1)


def test_equal_bins_are_counted_and_checked_without_being_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def listed(column: RealColumn) -> tuple[float, ...]:
        raise AssertionError("the edges were listed")

    monkeypatch.setattr(RealColumn, "edges", property(listed))
    column = {"name": "x", "type": "real", "lower": 0.0, "upper": 1.0, "decimals": 15}
    for bins in ({"count": MAX_CODES}, {"width": 1 / MAX_CODES}):
        found = RealColumn.model_validate({**column, "bins": bins})
        assert found.size == MAX_CODES + 1
    with pytest.raises(ValidationError, match="less than or equal to 100000"):
        RealColumn.model_validate({**column, "bins": {"count": 1_000_000}})


@given(
    lower=st.integers(-90, 90),
    above=st.integers(1, 90),
    digits=st.integers(0, 2),
    decimals=st.integers(0, 2),
    bins=st.one_of(
        st.integers(1, 60).map(lambda count: {"count": count}),
        st.integers(1, 500).map(lambda hundredths: {"width": hundredths / 100}),
    ),
)
def test_equal_bins_are_refused_exactly_where_one_of_them_is_empty(
    lower: int, above: int, digits: int, decimals: int, bins: Any
) -> None:
    column = {
        "name": "x",
        "type": "real",
        "lower": lower / 10**digits,
        "upper": (lower + above) / 10**digits,
        "bins": bins,
    }
    edges = list(RealColumn.model_validate(column).edges)

    def is_accepted(bins: Any) -> bool:
        try:
            RealColumn.model_validate({**column, "bins": bins, "decimals": decimals})
        except ValidationError:
            return False
        return True

    assert is_accepted(bins) == is_accepted({"edges": edges})


def test_codes_of_all_columns_together_are_bounded() -> None:
    def columns(count: int) -> list[dict[str, Any]]:
        column = {"type": "real", "lower": 0, "upper": 1, "bins": {"count": 99_999}}
        return [{**column, "name": f"x{position}"} for position in range(count)]

    values = {"name": "c", "type": "categorical", "values": ["a"], "nullable": False}
    groups = {"key": "hid", "columns": columns(2)}
    own: dict[str, Any] = {
        "group_key": "hid",
        "columns": [{**c, "name": f"own {c['name']}"} for c in columns(3)],
    }
    assert Schema.model_validate({"columns": columns(5)})
    assert TwoLevelSchema.model_validate(
        {"groups": groups, "individuals": own, "max_group_size": 2}
    ).linked
    too_many = "500,002 bins and values in total, more than 500,000"
    with pytest.raises(ValidationError, match=too_many):
        Schema.model_validate({"columns": [*columns(5), values]})
    own["columns"].append(values)
    with pytest.raises(ValidationError, match=too_many):
        TwoLevelSchema.model_validate({"groups": groups, "individuals": own, "max_group_size": 2})


def test_a_schema_says_whether_its_rows_are_in_groups() -> None:
    identifiers = [{"name": name, "type": "identifier"} for name in ("hid", "who")]
    columns = [*identifiers, {"name": "age", "type": "integer", "lower": 0, "upper": 9}]
    town = {"name": "town", "type": "categorical", "values": ["a"]}
    flat = Schema.model_validate({"columns": columns})
    assert flat.linked is flat
    assert (flat.key, flat.is_linked, flat.row_noun, flat.places) == (None, False, "rows", 1)
    assert flat.columns_of_groups == set()
    assert flat.owners == ["hid", "who"]
    declared = TwoLevelSchema.model_validate(
        {
            "groups": {"key": "id", "columns": [town]},
            "individuals": {"group_key": "hid", "columns": columns},
            "max_group_size": 3,
        }
    )
    linked = declared.linked
    assert linked.linked is linked
    assert (linked.key, linked.is_linked, linked.row_noun, linked.places) == (
        "id",
        True,
        "groups",
        3,
    )
    assert linked.columns_of_groups == {"town"}
    assert (declared.is_linked, declared.places, declared.owners) == (True, 3, ["who"])


def test_a_stored_schema_is_not_checked_again() -> None:
    repeated = {"columns": [{"name": "a", "type": "categorical", "values": ["x", "x"]}]}
    with pytest.raises(ValidationError, match="distinct"):
        Schema.model_validate(repeated)
    assert Schema.model_validate(repeated, context=STORED).sizes == {"a": 4}


def test_a_changed_copy_computes_its_codes_again() -> None:
    column = CategoricalColumn(name="a", type="categorical", values=["x"])
    assert column.labels == ("x", "other")
    assert column.model_copy(update={"values": ["y"]}).labels == ("y", "other")


def test_one_wrong_value_of_many_is_reported_once() -> None:
    with pytest.raises(ValidationError) as refused:
        CategoricalColumn.model_validate(
            {"name": "a", "type": "categorical", "values": list(range(50_000))}
        )
    assert refused.value.error_count() == 1


@pytest.mark.parametrize(
    ("lower", "upper", "bins", "message"),
    [
        (1.0, 1.0, {"count": 1}, '"lower" must be smaller than "upper"'),
        (-1e308, 1e308, {"count": 1}, "too large for a number"),
        (0.0, 1.0, {"width": 1e-9}, "use a larger one"),
        (0.0, 1e300, {"width": 1e-300}, "use a larger one"),
        (1.0, math.nextafter(1, 2), {"count": 3}, "the bins are too narrow"),
        (0.0, 1.0, {"edges": [0.0, 0.5]}, "first edge"),
        (0.0, 1.0, {"edges": [0.0, 0.5, 0.5, 1.0]}, "increase"),
        (0.0, 1.0, {"edges": [0.0, math.nan, 1.0]}, "finite"),
        (0.0, math.inf, {"count": 3}, "finite"),
    ],
)
def test_refused_real_columns(lower: float, upper: float, bins: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        real(lower, upper, **bins)


@pytest.mark.parametrize("fields", [{}, {"width": 1, "count": 2}, {"width": 0}, {"count": 0}])
def test_bins_take_exactly_one_field(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Bins.model_validate(fields)


def test_a_column_without_bins_has_no_codes() -> None:
    column = RealColumn(name="x", type="real", lower=0, upper=1)
    for read in (lambda: column.size, lambda: column.edges):
        with pytest.raises(ValueError, match="'x' has no bins"):
            read()


# Tables -------------------------------------------------------------------------------------------


def column(name: str, kind: str = "categorical") -> dict[str, Any]:
    return {"name": name, "type": kind, **({"values": ["a"]} if kind == "categorical" else {})}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([], "at least 1"),
        ([column("a"), column("a")], "'a' is declared twice"),
        ([column("a", "identifier")], "not an identifier"),
        ([column("")], "at least 1 character"),
        ([column("a\nb")], "pattern"),
        ([column("a" * 201)], "at most 200"),
        ([{"name": "a", "type": "text"}], f'"type" must be one of: {", ".join(TYPES)}{ADVICE}'),
        ([{"name": "a"}], '"type" must be one of'),
        ([{**column("a"), "unknown": 1}], "Extra inputs"),
        ([{**column("a"), "values": []}], "at least 1 item"),
        ([{**column("a"), "values": [1]}], "valid string"),
    ],
)
def test_refused_schemas(columns: list[Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Schema.model_validate({"columns": columns})


def test_two_levels() -> None:
    tables: dict[str, Any] = {
        "groups": {"key": "hid", "columns": [column("region")]},
        "individuals": {"group_key": "hid", "columns": [column("sex")]},
        "max_group_size": 5,
    }
    assert TwoLevelSchema.model_validate(tables).max_group_size == 5
    tables["individuals"]["columns"].append(column("sex"))
    with pytest.raises(ValidationError, match="'sex' is declared twice"):
        TwoLevelSchema.model_validate(tables)


def test_a_schema_never_changes() -> None:
    schema = Schema.model_validate(EXAMPLE)
    with pytest.raises(ValidationError, match="frozen"):
        schema.columns = []  # type: ignore[misc]


@pytest.mark.parametrize(
    ("decimals", "edges", "fits"),
    [
        (0, [0, 1, 2], True),
        (0, [0, 0.5, 2], True),
        (0, [0, 0.25, 0.75, 2], False),
        (1, [0, 0.25, 0.75, 2], True),
        (1, [0, 0.29, 0.3, 2], False),
        (0, [0.2, 1], True),
        (0, [0.2, 0.8], False),
    ],
)
def test_every_cell_holds_a_number_with_the_declared_decimals(
    decimals: int, edges: list[float], fits: bool
) -> None:
    column = {
        "name": "x",
        "type": "real",
        "lower": edges[0],
        "upper": edges[-1],
        "decimals": decimals,
        "bins": {"edges": edges},
    }
    if fits:
        Schema.model_validate({"columns": [column]})
    else:
        with pytest.raises(ValidationError, match="more decimals or wider bins"):
            Schema.model_validate({"columns": [column]})


def test_two_tables_have_no_more_columns_together_than_one_may_have() -> None:
    def tables(of_each: int) -> dict[str, Any]:
        def columns(prefix: str) -> list[dict[str, Any]]:
            return [column(f"{prefix}{number}") for number in range(of_each)]

        return {
            "groups": {"key": "id", "columns": columns("g")},
            "individuals": {"group_key": "home", "columns": columns("p")},
            "max_group_size": 3,
        }

    assert len(TwoLevelSchema.model_validate(tables(499)).linked.columns) == 999
    with pytest.raises(ValidationError, match="1,001 columns, but at most 1,000 are allowed"):
        TwoLevelSchema.model_validate(tables(500))
