"""Forms and bodies: conversion of submitted forms to bodies of the API, and back."""

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from scrim.spec.budget import epsilon_of_units
from scrim.spec.descriptions import describe_item, describe_settings
from scrim.spec.mechanism import MECHANISMS
from scrim.spec.schema import Schema
from scrim.spec.workload import WorkloadItem
from service.console import release_form, schema_form, schema_rows
from service.console.fields import fields_of, filled, shown, values_of
from service.console.forms import Form, number, parsed_json, repeat_key
from service.console.labels import describe_column, describe_file, describe_workload
from service.console.pages import amount, epsilon, fixed, size
from service.data.errors import IdempotencyKeyReused, Invalid, ProblemDocument
from tests.scrim import column_types

NAMES = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=1, max_size=12)
LINES = NAMES.filter(lambda text: text.splitlines() == [text] and text.strip() == text)

OTHERS: list[dict[str, Any]] = [
    {"type": "ordinal", "values": ["low", "high"], "other": "low"},
    {"type": "boolean", "true": ["yes", "Y"], "false": ["no"]},
    {"type": "code", "values": ["A01", "B02"], "levels": [1, 2], "reference": {"A01": 2.5}},
    {"type": "code", "code_list": [{"code": "A01", "group": "A"}]},
    {"type": "date", "lower": "2015-01-01", "upper": "2020-12-31", "format": "%d.%m.%Y"},
    {
        "type": "datetime",
        "lower": "2015-01-01",
        "upper": "2020-12-31",
        "resolution": "hour",
        "bins": {"edges": ["2015-01-01", "2018-01-01", "2020-12-31"]},
    },
    {"type": "integer", "lower": 0, "upper": 9, "bins": {"adaptive": 4}, "special": [0]},
    {"type": "integer", "lower": 0, "upper": 9, "missing": ["NA", "?"]},
    {"type": "integer", "lower": 0, "upper": 9, "missing": {"NA": "refused", "?": "unknown"}},
    # What the grid cannot show.
    {"type": "integer", "lower": 0, "upper": 9, "missing": ["a, b", ""]},
    {"type": "categorical", "values": ["two\nlines", " spaced "]},
]
"""Fields of columns of the other types, and of some that the grid shows only in part."""


def columns() -> st.SearchStrategy[dict[str, Any]]:
    """Columns as the API takes them."""
    numeric = st.tuples(st.integers(-1000, 0), st.integers(1, 1000), st.sampled_from([1, 2, 5]))
    return st.one_of(
        st.builds(
            lambda name, values, nullable: {
                "name": name,
                "type": "categorical",
                "values": values,
                "nullable": nullable,
            },
            LINES,
            st.lists(LINES, min_size=1, max_size=4, unique=True),
            st.booleans(),
        ),
        st.builds(
            lambda name, bounds, bins, nullable: {
                "name": name,
                "type": "integer",
                "lower": bounds[0],
                "upper": bounds[1],
                "nullable": nullable,
                **({"bins": {bins: bounds[2]}} if bins else {}),
            },
            LINES,
            numeric,
            st.sampled_from(["", "width", "count"]),
            st.booleans(),
        ),
        st.builds(
            lambda name, edges, decimals: {
                "name": name,
                "type": "real",
                "lower": edges[0],
                "upper": edges[-1],
                "nullable": True,
                "bins": {"edges": edges},
                **({"decimals": decimals} if decimals else {}),
            },
            LINES,
            st.just([0.5, 10.25, 100.0]),
            st.sampled_from([0, 2]),
        ),
        st.builds(
            lambda name, fields, nullable: {"name": name, **fields, "nullable": nullable},
            LINES,
            st.sampled_from(OTHERS),
            st.booleans(),
        ),
        st.builds(lambda name: {"name": name, "type": "identifier"}, LINES),
    )


def submitted(draft: schema_form.Draft) -> Form:
    """The form as a browser sends it back."""
    pairs = [("missing", draft.missing), ("schema_rest", draft.rest)]
    for place, row in enumerate(draft.rows):
        for each in fields(row):
            value = getattr(row, each.name)
            if each.name == "nullable":
                pairs += [(f"c{place}.nullable", "yes")] if value else []
            else:
                pairs.append((f"c{place}.{each.name}", value))
    return Form(pairs)


class TestSchemas:
    @given(st.lists(columns(), min_size=1, max_size=5))
    @settings(max_examples=100)
    def test_rows_hold_every_schema(self, given_columns: list[dict[str, Any]]) -> None:
        schema = {"columns": given_columns}
        draft = schema_form.draft_from(schema)
        assert draft is not None
        assert schema_form.declared(draft) == schema

    @given(st.lists(columns(), max_size=3), st.lists(columns(), max_size=3), st.booleans())
    @settings(max_examples=50)
    def test_rows_hold_two_tables(
        self, of_groups: list[Any], of_individuals: list[Any], ordered: bool
    ) -> None:
        schema = {
            "groups": {"key": "home", "columns": of_groups},
            "individuals": {
                "group_key": "lives in",
                **({"order": "age"} if ordered else {}),
                "columns": of_individuals,
            },
            "max_group_size": 6,
        }
        draft = schema_form.draft_from(schema)
        assert draft is not None
        assert schema_form.declared(draft) == schema

    def test_what_the_grid_does_not_show_survives_the_form(self) -> None:
        schema = {
            "missing": ["NA", "?"],
            "rules": [{"never": {"sex": ["F"]}}],
            "columns": [{"name": str(place), **each} for place, each in enumerate(OTHERS)],
        }
        draft = schema_form.draft_from(schema)
        assert draft is not None
        again = schema_form.draft_of(submitted(draft))
        before = {each["name"]: each for each in schema_form.declared(draft)["columns"]}
        found = schema_form.declared(again)
        assert {each["name"]: each for each in found["columns"]} == before
        assert (found["missing"], found["rules"]) == (schema["missing"], schema["rules"])

    def test_another_type_takes_nothing_hidden_along(self) -> None:
        column = {"name": "icd", **OTHERS[2]}
        row = schema_rows.row_from(column, "groups")
        assert schema_rows.column_of(row)["reference"] == {"A01": 2.5}
        changed = schema_rows.column_of(replace(row, type="categorical"))
        assert changed == {
            "name": "icd", "type": "categorical", "values": ["A01", "B02"], "nullable": True
        }  # fmt: skip

    def test_what_is_typed_replaces_what_was_hidden(self) -> None:
        row = schema_rows.row_from({"name": "x", **OTHERS[6]}, "groups")
        edited = schema_rows.column_of(replace(row, bins="width", bins_value="5"))
        assert (edited["bins"], edited["special"]) == ({"width": 5}, [0])

    def test_places_are_counted_in_each_table(self) -> None:
        tables = [("a", "groups"), ("b", "individuals"), ("", "groups"), ("c", "groups")]
        rows = [schema_rows.ColumnRow(name=name, table=table) for name, table in tables]
        linked = schema_form.Draft(rows, schema_form.Linking())
        assert linked.places() == [
            "two_level.groups.columns.0",
            "two_level.individuals.columns.0",
            None,
            "two_level.groups.columns.1",
        ]
        alone = schema_form.Draft(rows).places()
        assert alone == ["flat.columns.0", "flat.columns.1", None, "flat.columns.2"]

    def test_a_form_becomes_a_schema_that_the_api_takes(self) -> None:
        form = Form(
            [
                ("c0.name", "sex"), ("c0.type", "categorical"), ("c0.values", "F\nM\n"),
                ("c1.name", "age"), ("c1.type", "integer"), ("c1.lower", "0"), ("c1.upper", "99"),
                ("c1.bins", "width"), ("c1.bins_value", "10"), ("c1.nullable", "yes"),
                ("c2.name", ""), ("c2.type", "categorical"),
                ("c10.name", "pid"), ("c10.type", "identifier"),
            ]
        )  # fmt: skip
        found = Schema.model_validate(schema_form.schema_of(form))
        assert [column.name for column in found.columns] == ["sex", "age", "pid"]
        assert found.sizes == {"sex": 3, "age": 11}

    def test_rows_come_and_go(self) -> None:
        draft = schema_form.Draft([schema_rows.ColumnRow(name=name) for name in "abc"])

        def names(action: str) -> list[str]:
            return [row.name for row in schema_form.changed(draft, action).rows]

        assert names("remove:1") == ["a", "c"]
        assert names("add") == ["a", "b", "c", ""]
        for action in ("remove:9", "remove:-1", "remove:x", "remove:", "nonsense"):
            assert schema_form.changed(draft, action) == draft
        alone = schema_form.Draft([schema_rows.ColumnRow()])
        assert schema_form.changed(alone, "remove:0") == alone

    def test_a_new_row_is_in_the_table_of_the_last(self) -> None:
        row = schema_rows.ColumnRow(name="age", table="individuals")
        draft = schema_form.Draft([row], schema_form.Linking())
        assert schema_form.changed(draft, "add").rows[-1].table == "individuals"

    def test_what_is_no_schema_is_left_to_json(self) -> None:
        assert schema_form.draft_from({"groups": {}, "individuals": {}}) is None
        assert schema_form.draft_from({"groups": 7, "individuals": []}) is None
        assert schema_form.draft_from({"columns": [{"type": "unheard of"}]}) is None
        assert schema_form.draft_from({"columns": 7}) is None

    def test_a_bare_list_stands_for_its_columns(self) -> None:
        form = Form([("mode", "json"), ("schema_json", "[]")])
        assert schema_form.schema_of(form) == {"columns": []}

    def test_json_that_is_none_is_refused_without_repeating_it(self) -> None:
        with pytest.raises(Invalid) as refusal:
            parsed_json('{"secret', loc=["schema"])
        assert "secret" not in str(refusal.value)


class TestFieldsOfModels:
    @pytest.mark.parametrize("spec", MECHANISMS, ids=lambda spec: str(spec.catalogue_name()))
    def test_the_defaults_of_every_mechanism_survive_its_form(self, spec: Any) -> None:
        default = spec.model_validate({"name": spec.catalogue_name()})
        values = default.model_dump(mode="json")
        fields = shown(fields_of(spec.model_json_schema()), values)
        assert spec.model_validate({"name": default.name, **values_of(fields)}) == default

    def test_an_empty_form_is_the_default(self) -> None:
        for spec in MECHANISMS:
            fields = filled(fields_of(spec.model_json_schema()), Form(), "m.")
            assert values_of(fields) == {}

    def test_every_type_of_item_can_be_chosen(self) -> None:
        adapter: TypeAdapter[Any] = TypeAdapter(WorkloadItem)
        known = {
            each["properties"]["type"]["const"]
            for each in adapter.json_schema()["$defs"].values()
            if "const" in each.get("properties", {}).get("type", {})
        }
        assert set(release_form.item_types()) == known

    def test_what_is_no_number_is_left_for_the_model(self) -> None:
        form = Form([("w0.type", "marginals"), ("w0.k", "two")])
        assert release_form.body_of(form)["workload"] == [{"type": "marginals", "k": "two"}]


class TestReleases:
    def test_a_new_form_is_a_release_that_the_api_takes(self) -> None:
        body = release_form.body_of(release_form.new_form("some-dataset"))
        assert release_form.RELEASE.validate_python(body).mechanism.name == "auto"

    def test_answers_only_takes_no_rows(self) -> None:
        form = release_form.new_form("d").replacing("w", [("w0.type", "marginals"), ("w0.k", "1")])
        pairs = [("mechanism", "gaussian"), ("rows", "100"), ("certify", "yes")]
        body = release_form.body_of(Form([*form.pairs(), *pairs]))
        assert release_form.RELEASE.validate_python(body).outputs.rows is None

    def test_draws_are_for_mechanisms_with_rows(self) -> None:
        form = Form([*release_form.new_form("d").pairs(), ("draws", "5")])
        assert release_form.RELEASE.validate_python(release_form.body_of(form)).outputs.draws == 5
        answers_only = Form([*form.pairs(), ("mechanism", "gaussian")])
        assert "draws" not in release_form.body_of(answers_only)["outputs"]

    def test_items_come_and_go(self) -> None:
        form = Form([("w0.type", "marginals"), ("w0.k", "3"), ("budget", "1")])
        more = release_form.changed(form, "add")
        assert [row.type for row in release_form.items_of(more)] == ["marginals", "marginals"]
        fewer = release_form.changed(more, "remove:0")
        (left,) = release_form.items_of(fewer)
        assert values_of(left.fields) == {"k": 1}
        assert fewer.text("budget") == "1"
        assert len(release_form.items_of(release_form.changed(fewer, "remove:0"))) == 1

    def test_sets_of_columns(self) -> None:
        form = Form([("w0.type", "marginals"), ("w0.attributes", "age, sex\n\ntown")])
        (item,) = release_form.body_of(form)["workload"]
        assert item["attributes"] == [["age", "sex"], ["town"]]


def test_a_form_repeats_its_key_unless_it_was_used() -> None:
    form = Form([("repeat_key", "mine")])
    used = f"/problems/{IdempotencyKeyReused.type}"
    assert repeat_key(form) == "mine"
    assert repeat_key(form, _problem("/problems/invalid")) == "mine"
    assert repeat_key(form, _problem(used)) not in {"mine", ""}
    assert repeat_key() != repeat_key()


def _problem(kind: str) -> ProblemDocument:
    return ProblemDocument(type=kind, title="", status=409, detail="", request_id="")


class TestNumbers:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (0.0, "0"), (1.0, "1"), (0.1234567, "0.1235"), (1234.5678, "1,235"), (0.5, "0.5"),
            (-0.25, "-0.25"), (1e-7, "1e-07"), (1e12, "1e+12"), (100.0, "100"), (0.00012, "0.00012"),
        ],
    )  # fmt: skip
    def test_amounts(self, value: float, text: str) -> None:
        assert amount(value) == text

    @given(st.floats(1e-9, 100), st.sampled_from([1e-9, 1e-6]))
    def test_epsilon_is_never_shown_too_small(self, rho: float, delta: float) -> None:
        exact = epsilon_of_units(round(rho * 10**12), delta)
        text = epsilon(rho, delta).replace(",", "")
        assert float(text) >= exact * (1 - 1e-9)
        assert float(text) <= exact * 1.011

    def test_sizes(self) -> None:
        assert [size(n) for n in (0, 999, 1500, 2_500_000, 10**13)] == [
            "0 bytes", "999 bytes", "1.5 KB", "2.5 MB", "10 TB",
        ]  # fmt: skip

    def test_columns_of_amounts_line_up(self) -> None:
        assert [fixed(value) for value in (0.0, 1.5, 0.000088)] == [
            "0.000000",
            "1.500000",
            "0.000088",
        ]
        assert fixed(1e-9) == "1.0e-09"

    def test_numbers_are_parsed(self) -> None:
        assert [number(text) for text in ("3", "0.5", "1e-9", "x", "")] == [3, 0.5, 1e-9, "x", ""]


class TestWords:
    @pytest.mark.parametrize(
        ("item", "text"),
        [
            ({"type": "marginals", "k": 2}, "all 2-way marginals"),
            ({"type": "marginals", "k": 3, "count": 64, "seed": 1}, "64 random 3-way marginals (seed 1)"),
            ({"type": "marginals", "attributes": [["a", "b"], ["c"]]}, "marginals of a × b; c"),
            ({"type": "binary_tree", "k": 1, "levels": 5}, "all 1-way binary tree (levels 5)"),
            ({"type": "ranges", "queries": [{}, {}]}, "2 named ranges"),
            ({"type": "halfspaces", "count": 1000, "seed": 0}, "1,000 random halfspaces (seed 0)"),
            ({"type": "group_sizes"}, "all group sizes"),
        ],
    )  # fmt: skip
    def test_items(self, item: dict[str, Any], text: str) -> None:
        assert describe_item(item) == text

    def test_workloads(self) -> None:
        many = {"type": "marginals", "attributes": [["a"], ["b"], ["c"]]}
        assert describe_workload([many, many]) == "3 chosen marginals and 1 more"

    def test_settings(self) -> None:
        given_settings = {
            "name": "gem",
            "rounds": 3,
            "average": False,
            "hidden": [1, 2],
            "x": {"y": 1},
        }
        assert describe_settings(given_settings) == "rounds 3, no average, hidden 1, 2, x (y 1)"

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("synthetic.csv", "Synthetic rows"),
            ("synthetic_12.parquet", "Synthetic rows, set 12 for standard errors"),
            ("synthetic_1_groups.csv", "Synthetic groups, set 1 for standard errors"),
            ("synthetic_individuals.csv", "Synthetic individuals"),
        ],
    )
    def test_files(self, name: str, words: str) -> None:
        assert describe_file(name) == words

    def test_columns(self) -> None:
        assert describe_column({"type": "identifier"}) == "never released"
        assert describe_column({"type": "boolean", "true": ["y"]}) == "y or false"
        assert describe_column({"type": "ordinal", "values": ["low", "high"]}) == "low < high"
        assert describe_column(OTHERS[3]) == "A01"
        assert describe_column(OTHERS[5]) == "2015-01-01 to 2020-12-31, by hour, in 2 bins"
        long = {"type": "categorical", "values": [f"v{n}" for n in range(20)]}
        assert describe_column(long).endswith("v11 and 8 more")
        cut = {"type": "real", "lower": 0.0, "upper": 8000.0, "bins": {"edges": [0, 1, 8000]}}
        assert describe_column(cut) == "0 to 8,000, in 2 bins"
        declared = {column["name"]: column for column in column_types.DECLARED}
        found = {name: describe_column(column) for name, column in declared.items()}
        assert found["pain"] == "none < mild < severe; missing: refused, unknown"
        assert found["smoker"] == "yes, Y or no, N"
        assert found["born"].startswith("1940-01-01 to 2020-12-31, by month, in 3 bins; missing:")
        assert found["diagnosis"] == "A00, A01, B20, B21, C50"
