"""CSVW-EO metadata: what is imported, and that everything else is refused with its name."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrim.importers import from_csvw_eo
from scrim.spec.columns import LabelledColumn
from scrim.spec.errors import SpecError
from scrim.spec.population import Protection
from scrim.spec.schema import Schema

from .support import dumped, json_values

DAYS = {"minimum": "2025-01-01", "maximum": "2025-12-31"}
WEIGHT = {"name": "weight", "datatype": "double", "minimum": 0.5, "maximum": 9.5}


def csvw(*columns: dict[str, Any], **table: Any) -> dict[str, Any]:
    return {
        "@context": "http://www.w3.org/ns/csvw",
        "tableSchema": {"columns": [*columns]},
        **table,
    }


PENGUINS = csvw(
    {
        "@type": "Column",
        "name": "species",
        "datatype": "string",
        "required": True,
        "privacyId": False,
        "nullableProportion": 0.0,
        "rowDependencies": [{"dependsOn": "island", "dependencyType": "mapping", "valueMap": {}}],
        "keyValues": ["Adelie", "Chinstrap", "Gentoo"],
        "partitions": [
            {
                "@type": "Partition",
                "predicate": {"partitionValue": value},
                "maxLength": 152,
                "maxGroupsPerUnit": 3,
                "maxContributions": 1,
            }
            for value in ("Adelie", "Chinstrap", "Gentoo")
        ],
        "invariantPublicKeys": True,
        "exhaustiveKeys": True,
        "maxNumPartitions": 3,
    },
    {
        "@type": "Column",
        "name": "bill_length_mm",
        "datatype": "double",
        "required": False,
        "minimum": 32.1,
        "maximum": 59.6,
        "partitions": [
            {"predicate": {"lowerBound": low, "upperBound": low + 10.0}}
            for low in (30.0, 40.0, 50.0)
        ],
    },
    {"name": "body_mass_g", "datatype": "positiveInteger", "minimum": 2700.0, "maximum": 6300.0},
    {"name": "sex", "datatype": "boolean", "required": True, "keyValues": [False, True]},
    {"name": "penguin_id", "datatype": "positiveInteger", "privacyId": True, "minimum": 1},
    **{
        "@type": "Table",
        "privacyUnit": "penguin_id",
        "maxContributions": 3,
        "maxLength": 344,
        "publicLength": 344,
        "additionalInformation": [{"@type": "ColumnGroup", "columnsInGroup": ["species", "sex"]}],
    },
)


def test_a_document_of_csvw_eo() -> None:
    imported = from_csvw_eo(json.dumps(PENGUINS))
    assert imported.protection == Protection(unit="person", max_rows_per_person=3)
    assert dumped(imported) == [
        {
            "name": "species",
            "type": "categorical",
            "values": ["Adelie", "Chinstrap", "Gentoo"],
            "nullable": False,
        },
        {
            "name": "bill_length_mm",
            "type": "real",
            "lower": 32.1,
            "upper": 59.6,
            "bins": {"edges": [32.1, 40.0, 50.0, 59.6]},
        },
        {"name": "body_mass_g", "type": "integer", "lower": 2700, "upper": 6300},
        {"name": "sex", "type": "boolean", "nullable": False},
        {"name": "penguin_id", "type": "identifier"},
    ]


def test_prefixes_and_older_drafts() -> None:
    imported = from_csvw_eo(
        {
            "@type": "csvw:Table",
            "dc:title": "Penguins",
            "csvw-safe:public.privacyUnit": "id",
            "https://w3id.org/csvw-eo#bounds.maxContributions": 2,
            "csvw:tableSchema": {
                "dp:maxTableLength": 344,
                "columns": [
                    {"csvw:name": "id", "csvw-eo:privacyId": True, "schema:name": "ID"},
                    {"name": "island", "dp:publicPartitions": ["Biscoe", "Dream"]},
                    {
                        "name": "species",
                        "csvw-safe:public.partitions": [
                            {"csvw-safe:predicate": {"csvw-safe:partitionValue": "Adelie"}}
                        ],
                    },
                ],
            },
        }
    )
    assert imported.protection == Protection(unit="person", max_rows_per_person=2)
    assert dumped(imported) == [
        {"name": "id", "type": "identifier"},
        {"name": "island", "type": "categorical", "values": ["Biscoe", "Dream"]},
        {"name": "species", "type": "categorical", "values": ["Adelie"]},
    ]


def test_plain_csvw() -> None:
    imported = from_csvw_eo(
        {
            "@context": ["http://www.w3.org/ns/csvw", {"@language": "en"}],
            "required": True,
            "tables": [
                {
                    "url": "people.csv",
                    "dialect": {"delimiter": ";"},
                    "null": "",
                    "tableSchema": {
                        "primaryKey": "age",
                        "columns": [
                            {
                                "name": "age",
                                "titles": "Age",
                                "datatype": {"base": "integer", "minimum": "0", "maximum": 120},
                            },
                            {
                                "titles": {"en": ["Sex"], "und": "Sex"},
                                "datatype": {"base": "string", "format": "^(F|M)$"},
                                "required": False,
                            },
                            {"name": "paid", "datatype": {"base": "boolean", "format": "Y|N"}},
                            {
                                "name": "rate",
                                "null": ["", "NA"],
                                "datatype": {
                                    "base": "http://www.w3.org/2001/XMLSchema#decimal",
                                    "minInclusive": -1,
                                    "maxInclusive": 1,
                                },
                            },
                            {"name": "link", "virtual": True, "valueUrl": "http://example.org"},
                            {"name": "internal", "suppressOutput": True},
                        ],
                    },
                }
            ],
        }
    )
    assert imported.protection is None
    assert dumped(imported) == [
        {"name": "Age", "type": "integer", "lower": 0, "upper": 120, "nullable": False},
        {"name": "Sex", "type": "categorical", "values": ["F", "M"]},
        {"name": "paid", "type": "boolean", "true": ["Y"], "false": ["N"], "nullable": False},
        {
            "name": "rate",
            "missing": ["", "NA"],
            "nullable": False,
            "type": "real",
            "lower": -1,
            "upper": 1,
        },
    ]


@pytest.mark.parametrize(
    ("datatype", "declared"),
    [
        ("date", {"type": "date"}),
        ({"base": "date", "format": "dd.MM.yyyy"}, {"type": "date", "format": "%d.%m.%Y"}),
        ("gYear", {"type": "date", "resolution": "year", "format": "%Y"}),
        ({"base": "gYearMonth"}, {"type": "date", "resolution": "month", "format": "%Y-%m"}),
        (
            {"base": "dateTime", "format": "yyyy-MM-ddTHH:mm"},
            {"type": "datetime", "format": "%Y-%m-%dT%H:%M"},
        ),
    ],
)
def test_dates(datatype: Any, declared: dict[str, Any]) -> None:
    schema = from_csvw_eo(csvw({"name": "x", "datatype": datatype, **DAYS})).schema
    [column] = [c for c in schema.model_dump()["columns"] if c["name"] == "x"]
    expected = {"lower": DAYS["minimum"], "upper": DAYS["maximum"], **declared}
    assert {field: column.get(field) for field in expected} == expected


def test_null_values_are_spellings_of_missing() -> None:
    column = {"name": "x", "datatype": "integer", "minimum": 0, "maximum": 9, "null": ["", "-9"]}
    assert from_csvw_eo(csvw(column)).schema.attribute("x").missing == ["", "-9"]


def test_keys_that_are_not_all_leave_the_rest_to_other() -> None:
    town = {"name": "town", "publicKeys": ["Bern", None], "exhaustiveKeys": False}
    column = from_csvw_eo(csvw(town)).schema.attribute("town")
    assert isinstance(column, LabelledColumn)
    assert column.labels == ("Bern", "other")


def test_partitions_alone_bound_a_number() -> None:
    partitions = [{"minimum": 18, "maximum": 65}, {"minimum": 0, "maximum": 18}]
    age = {"name": "age", "datatype": "integer", "partitions": partitions}
    assert dumped(from_csvw_eo(csvw(age))) == [
        {"name": "age", "type": "integer", "lower": 0, "upper": 65, "bins": {"edges": [0, 18, 65]}}
    ]


def test_one_row_each_without_a_unit_protects_rows() -> None:
    assert from_csvw_eo(csvw(WEIGHT, maxContributions=1)).protection == Protection(unit="row")


def interval(lower: Any, upper: Any, **fields: Any) -> dict[str, Any]:
    return {"predicate": {"lowerBound": lower, "upperBound": upper, **fields}}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "town"}, "'town': text needs a list of its values.* add keyValues"),
        ({"name": "town", "datatype": {"format": "[A-Z]+"}}, "'town': text needs a list"),
        ({"name": "town", "datatype": {"format": "Bern"}}, "'town': text needs a list"),
        ({"name": "town", "datatype": {"format": "^F|M$"}}, "'town': text needs a list"),
        ({"name": "town", "datatype": "anyURI"}, "'town': text needs a list"),
        (
            {"name": "day", "datatype": "date", "minimum": "2025-01-01"},
            "'day': dates need minimum and maximum",
        ),
        ({"name": "at", "datatype": "time"}, "'at': only dates, months, years and times of a date"),
        (
            {"name": "x", "datatype": {"base": "date", "format": "EEE"}, **DAYS},
            "'x': this format of dates is not supported",
        ),
        ({"name": "age", "datatype": "integer"}, "'age': numbers need minimum and maximum"),
        ({"name": "age", "datatype": "unsignedByte"}, "'age': numbers need minimum and maximum"),
        ({**WEIGHT, "maximum": None}, "'weight': numbers need minimum and maximum"),
        ({**WEIGHT, "minInclusive": 1}, "'weight': minimum and minInclusive differ"),
        ({**WEIGHT, "minimum": "light"}, "'weight': minimum must be a number"),
        ({**WEIGHT, "datatype": "integer"}, "'weight': minimum must be a whole number"),
        ({**WEIGHT, "minimum": 10}, '^weight: "lower" must be smaller than "upper"$'),
        (
            {**WEIGHT, "datatype": {"base": "double", "minExclusive": 0}},
            "bounds belong to the range",
        ),
        ({**WEIGHT, "datatype": {"base": "double", "format": "0,0"}}, "write numbers plainly"),
        ({**WEIGHT, "datatype": {"base": "double", "unit": "kg"}}, "field 'unit' is not known"),
        ({**WEIGHT, "datatype": ["double"]}, "'weight': datatype must be an object"),
        ({**WEIGHT, "separator": ";"}, "'weight': cells that hold lists"),
        ({**WEIGHT, "default": "1"}, "'weight': fill empty cells in the file, and drop default"),
        ({**WEIGHT, "null": [-9]}, "'weight': null must be text, or a list of texts"),
        ({**WEIGHT, "required": "yes"}, "'weight': required must be true or false"),
        ({**WEIGHT, "binning": 3}, "'weight': the field 'binning' is not known"),
        ({**WEIGHT, "eo:privacyId": True}, "write 'eo:privacyId' as csvw-eo:privacyId"),
        ({**WEIGHT, "csvw:minimum": 0}, "gives 'minimum' twice"),
        ({"name": "x", "keyValues": ["a"], "publicKeys": ["b"]}, "list different categories"),
        (
            {"name": "x", "keyValues": ["a"], "invariantPublicKeys": False},
            "keys depend on the data",
        ),
        ({"name": "x", "keyValues": [None]}, '^x: "values" must have at least 1 item$'),
        ({"name": "x", "datatype": {"base": "boolean", "format": "Y"}}, "two texts, such as"),
        ({**WEIGHT, "partitions": [interval(0, 5), interval(6, 10)]}, "must meet without gaps"),
        ({**WEIGHT, "partitions": [interval(0, 6), interval(5, 10)]}, "must meet without gaps"),
        ({**WEIGHT, "partitions": [interval(0, 5)]}, "must cover minimum to maximum"),
        ({**WEIGHT, "partitions": [interval(5, 5)]}, "must be below its upper bound"),
        (
            {**WEIGHT, "partitions": [interval(0, 10, upperInclusive=True)]},
            "hold their lower bound",
        ),
        ({**WEIGHT, "partitions": [{"predicate": {"town": {}}}]}, "lowerBound must be a number"),
        ({**WEIGHT, "partitions": [3]}, "a partition must be an object"),
        ({"name": "a", "titles": ["b", "c"], "keyValues": ["x"]}, "'a' has several titles"),
        ({"datatype": "double"}, "column number 0 needs a name"),
    ],
)
def test_refused_csvw_columns(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        from_csvw_eo(csvw(fields))


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "tableSchema must be an object"),
        ({"tableSchema": {}}, "columns must be a list"),
        (csvw(), "at least 1 item"),
        ({"tables": []}, "describes 0 tables"),
        ({"tables": [csvw(WEIGHT), csvw(WEIGHT)]}, "describes 2 tables"),
        (csvw(WEIGHT, WEIGHT), "two columns have the same name"),
        (csvw(WEIGHT, privacyUnit="id"), "privacyUnit must be the name of a column"),
        (csvw(WEIGHT, privacyUnit=["weight"]), "privacyUnit must be the name of a column"),
        (csvw(WEIGHT, {"name": "id"}, privacyUnit="id"), "maxContributions is missing"),
        (csvw(WEIGHT, maxContributions=2), "declare it as privacyUnit"),
        (
            csvw(WEIGHT, {"name": "id"}, privacyUnit="id", maxContributions=0),
            '"max_rows_per_person" must be at least 1',
        ),
        (csvw(WEIGHT, {"name": "id"}, privacyUnit="id", maxContributions="3"), "must be a number"),
        (csvw(WEIGHT, privacyModel="joint"), "the table: the field 'privacyModel' is not known"),
        (
            csvw({"name": "a", "privacyId": True}, {"name": "b", "privacyId": True}),
            "the columns 'a', 'b' are privacy units, and only one can be",
        ),
        ('{"tableSchema": ', "not JSON"),
    ],
)
def test_refused_csvw_documents(document: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        from_csvw_eo(document)


@given(
    json_values,
    json_values,
    st.sampled_from(
        ["name", "titles", "datatype", "minimum", "keyValues", "partitions", "null", "required"]
    ),
)
def test_whatever_csvw_says_is_imported_or_refused(option: Any, value: Any, field: str) -> None:
    for document in (option, csvw({**WEIGHT, field: value}, privacyUnit=option)):
        with suppress(SpecError):
            assert isinstance(from_csvw_eo(document).schema, Schema)
