"""SmartNoise metadata: what is imported, and that everything else is refused with its name."""

import math
from contextlib import suppress
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrim.importers import from_smartnoise
from scrim.spec.errors import SpecError
from scrim.spec.population import Protection
from scrim.spec.schema import Schema

from .support import dumped, json_values


def smartnoise(**table: Any) -> dict[str, Any]:
    return {"": {"MySchema": {"MyTable": table}}}


INT = {"type": "int", "lower": 0, "upper": 100}


def test_smartnoise_people() -> None:
    imported = from_smartnoise(
        {
            "engine": "postgres",
            "Census": {
                "PUMS": {
                    "PUMS": {
                        "max_ids": 3,
                        "rows": 1000,
                        "sample_max_ids": True,
                        "censor_dims": False,
                        "clamp_counts": True,
                        "clamp_columns": True,
                        "use_dpsu": False,
                        "pid": {"type": "int", "private_id": True},
                        "age": {"name": "age", "type": "int", "lower": 0, "upper": 100},
                        "income": {
                            "type": "float",
                            "lower": 0,
                            "upper": 5e5,
                            "nullable": False,
                            "sensitivity": 10,
                        },
                        "married": {"type": "boolean"},
                        "notes": {"type": "unknown"},
                    }
                }
            },
        }
    )
    assert imported.protection == Protection(unit="person", max_rows_per_person=3)
    assert dumped(imported) == [
        {"name": "pid", "type": "identifier"},
        {"name": "age", "type": "integer", "lower": 0, "upper": 100},
        {"name": "income", "type": "real", "lower": 0, "upper": 5e5, "nullable": False},
        {"name": "married", "type": "boolean"},
    ]


def test_the_variant_of_lomas() -> None:
    imported = from_smartnoise(
        {
            "max_ids": 1,
            "row_privacy": True,
            "censor_dims": False,
            "rows": 344,
            "columns": {
                "species": {
                    "type": "string",
                    "cardinality": 2,
                    "categories": ["Adelie", "Gentoo"],
                    "max_partition_length": 200,
                    "max_influenced_partitions": 1,
                    "max_partition_contributions": 1,
                },
                "region": {
                    "type": "int",
                    "precision": 32,
                    "cardinality": 3,
                    "categories": [1, 2, 7],
                    "nullable_proportion": 0.0,
                },
                "mass": {
                    "type": "float",
                    "precision": 64,
                    "lower": 2000.0,
                    "upper": 7000.0,
                    "nullable_proportion": 0.1,
                },
            },
        }
    )
    assert imported.protection == Protection(unit="row")
    assert dumped(imported) == [
        {"name": "species", "type": "categorical", "values": ["Adelie", "Gentoo"]},
        {"name": "region", "type": "categorical", "values": ["1", "2", "7"], "nullable": False},
        {"name": "mass", "type": "real", "lower": 2000.0, "upper": 7000.0},
    ]


def test_smartnoise_without_a_privacy_unit() -> None:
    assert from_smartnoise(smartnoise(age=INT)).protection is None


def test_smartnoise_counts_one_row_per_person_unless_told() -> None:
    imported = from_smartnoise(smartnoise(pid={"type": "string", "private_id": True}, age=INT))
    assert imported.protection == Protection(unit="person", max_rows_per_person=1)


def test_smartnoise_booleans_as_the_file_spells_them() -> None:
    imported = from_smartnoise(smartnoise(x={"type": "boolean"}), booleans=("no", "yes"))
    assert dumped(imported) == [{"name": "x", "type": "boolean", "true": ["yes"], "false": ["no"]}]


@pytest.mark.parametrize("lower", ["2020-01-01", date(2020, 1, 1)])
def test_smartnoise_dates(lower: Any) -> None:
    bounds = {"lower": lower, "upper": "2020-12-31T23:59"}
    imported = from_smartnoise(smartnoise(x={"type": "datetime", **bounds}))
    expected = {"lower": "2020-01-01", "upper": "2020-12-31T23:59"}
    assert dumped(imported) == [{"name": "x", "type": "datetime", **expected}]


def test_smartnoise_names_lose_their_quotes() -> None:
    quoted = smartnoise(**{'"Sale-Amount"': INT, "`b c`": INT, "[d]": INT, '"': INT})
    names = [column.name for column in from_smartnoise(quoted).schema.columns]
    assert names == ["Sale-Amount", "b c", "d", '"']


def test_one_table_of_several() -> None:
    other = {"type": "int", "lower": 0, "upper": 7}
    metadata = {"": {"A": {"T": {"x": INT}, "U": {"x": other}}, "B": {"T": {"x": other}}}}
    for name in ("A.U", "U", "B.T"):
        assert dumped(from_smartnoise(metadata, table=name))[0]["upper"] == 7
    for unclear in (None, "T", "V"):
        with pytest.raises(SpecError, match=r"which table is meant; there are: A\.T, A\.U, B\.T"):
            from_smartnoise(metadata, table=unclear)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"sex": {"type": "string"}}, "column 'sex': text needs a list .* add categories"),
        ({"sex": {"type": "string", "cardinality": 2}}, "column 'sex': text needs a list"),
        ({"age": {"type": "int"}}, "column 'age': numbers need lower and upper"),
        ({"age": {"type": "int", "lower": 0}}, "column 'age': numbers need lower and upper"),
        ({"pay": {"type": "float", "upper": 1.0}}, "column 'pay': numbers need lower and upper"),
        ({"born": {"type": "datetime"}}, "column 'born': dates need lower and upper"),
        ({"x": {"type": "key"}}, "column 'x': type must be int, float"),
        ({"x": {}}, "column 'x': type must be"),
        ({"age": {**INT, "lower": "0"}}, "column 'age': lower must be a number"),
        ({"age": {**INT, "lower": 0.5}}, "column 'age': lower must be a whole number"),
        ({"age": {**INT, "upper": math.inf}}, "column 'age': upper must be a number"),
        ({"age": {**INT, "upper": True}}, "column 'age': upper must be a number"),
        ({"age": {**INT, "upper": -1}}, '^age: "lower" must not be larger than "upper"$'),
        ({"age": {**INT, "upper": 10**17}}, '^age: "upper" must be at most'),
        ({"age": {**INT, "nullable": "no"}}, "column 'age': nullable must be true or false"),
        ({"age": {**INT, "missing_value": 3}}, "column 'age': fill missing cells"),
        ({"age": {**INT, "name": "years"}}, "column 'age': its field name says otherwise"),
        ({"age": {**INT, "min": 0}}, "column 'age': the field 'min' is not known"),
        ({"age": 3}, "column 'age' must be an object"),
        ({"age": {**INT, "is_key": True}}, "the field 'is_key' is not known"),
        ({"age": INT, "`age`": INT}, "same name apart from quotes"),
        ({"max_rows": 2, "age": INT}, "column 'max_rows' must be an object"),
        (
            {"x": {"type": "string", "categories": ["a", "b"], "cardinality": 3}},
            "column 'x': cardinality is not the number of categories",
        ),
        (
            {"x": {"type": "string", "categories": ["a", "a"]}},
            "^x: values must be distinct",
        ),
        ({"x": {"type": "string", "categories": []}}, '^x: "values" must have at least 1 item$'),
        ({"x": {"type": "string", "categories": "ab"}}, "column 'x': the list of categories"),
        ({"x": {"type": "float", "categories": [0.5]}}, "column 'x': a category that is no text"),
        ({"row_privacy": True, "max_ids": 2, "age": INT}, "max_ids needs a private_id column"),
        ({"max_ids": 2, "age": INT}, "max_ids needs a private_id column"),
        ({"row_privacy": "yes", "age": INT}, "row_privacy must be true or false"),
        (
            {"row_privacy": True, "pid": {"type": "int", "private_id": True}, "age": INT},
            "row_privacy protects rows, but column 'pid' is a private_id",
        ),
        (
            {"a": {"type": "int", "private_id": True}, "b": {"private_id": True}, "age": INT},
            "the columns 'a', 'b' form one private_id",
        ),
        (
            {"max_ids": 0, "pid": {"private_id": True}, "age": INT},
            '^"max_rows_per_person" must be at least 1$',
        ),
        (
            {"max_ids": 1001, "pid": {"private_id": True}, "age": INT},
            '"max_rows_per_person" must be at most 1000',
        ),
        ({"pid": {"private_id": True}}, "not an identifier"),
        ({False: INT}, "a name that is not text; put it in quotes"),
    ],
)
def test_refused_smartnoise_tables(table: dict[Any, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        from_smartnoise({"": {"S": {"T": table}}})


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({}, "there are: none"),
        ([], "the metadata must be an object"),
        ({"": 3}, "collection '' must be an object"),
        ({"": {"S": []}}, "schema 'S' must be an object"),
        ({"columns": {"age": INT}, "max_row": 1}, "the table: the field 'max_row' is not known"),
    ],
)
def test_refused_smartnoise_documents(metadata: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        from_smartnoise(metadata)


@given(json_values, json_values, st.sampled_from(["type", "lower", "categories", "private_id"]))
def test_whatever_smartnoise_says_is_imported_or_refused(
    option: Any, value: Any, field: str
) -> None:
    for metadata in (option, smartnoise(max_ids=option, age={**INT, field: value})):
        with suppress(SpecError):
            assert isinstance(from_smartnoise(metadata).schema, Schema)
