"""Schemas are proposed from public samples alone, and fit for an upload as they are."""

import gzip
import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrim import UnusableInput
from scrim.schema import (
    REVIEW,
    Proposal,
    from_code_book,
    propose,
    propose_two_level,
    skeleton,
)
from scrim.spec.columns import (
    BooleanColumn,
    CategoricalColumn,
    DateColumn,
    IntegerColumn,
    RealColumn,
)
from scrim.spec.schema import Schema
from scrim.spec.two_level import TwoLevelSchema
from scrim.spec.workload.conditions import numeric_columns
from scrim.values import parse_schema

ROWS = 200
CELLS: dict[str, list[Any]] = {
    "patient_id": [f"person-{i}" for i in range(ROWS)],
    "number": list(range(1, ROWS + 1)),
    "sex": ["F", "M", None, "X"] * (ROWS // 4),
    "age": [17 + i * 31 % 74 for i in range(ROWS)],
    "weight": [round(2.05 + i * 0.37 % 97, 2) for i in range(ROWS)],
    "member": [i % 3 == 0 for i in range(ROWS)],
    "zip": [f"0{i % 7}" for i in range(ROWS)],
    "born": [date(1950 + i % 60, 1 + i % 12, 1 + i % 28) for i in range(ROWS)],
    "nothing": [None] * ROWS,
    "note": ["a" * 150, *["b"] * (ROWS - 1)],
}


def stated(sample: Any) -> Proposal:
    return propose(sample, sample_is_public=True)


def as_csv(folder: Path) -> Path:
    path = folder / "sample.csv"
    pl.DataFrame(CELLS).write_csv(path)
    return path


def as_gzip(folder: Path) -> Path:
    path = folder / "sample.csv.gz"
    path.write_bytes(gzip.compress(as_csv(folder).read_bytes()))
    return path


def as_parquet(folder: Path) -> Path:
    path = folder / "sample.parquet"
    pl.DataFrame(CELLS).write_parquet(path)
    return path


SAMPLES: dict[str, Callable[[Path], Any]] = {
    "csv": as_csv,
    "gzip": as_gzip,
    "parquet": as_parquet,
    "pandas": lambda folder: pd.DataFrame(CELLS),
    "polars": lambda folder: pl.DataFrame(CELLS),
    "lazy": lambda folder: pl.LazyFrame(CELLS),
    "pyarrow": lambda folder: pa.table(CELLS),
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_a_sample_becomes_a_schema(kind: str, tmp_path: Path) -> None:
    proposal = stated(SAMPLES[kind](tmp_path))
    found = {column.name: column for column in proposal.schema.linked.columns}
    assert list(found) == ["patient_id", "number", "sex", "age", "weight", "member", "zip", "born"]
    assert found["sex"] == CategoricalColumn(name="sex", type="categorical", values=["F", "M", "X"])
    assert found["member"] == BooleanColumn(name="member", type="boolean")
    zip_code, age, weight, born = (found[name] for name in ("zip", "age", "weight", "born"))
    assert isinstance(zip_code, CategoricalColumn)
    assert zip_code.values == [f"0{i}" for i in range(7)]
    assert isinstance(age, IntegerColumn) and (age.lower, age.upper) == (15, 94)
    assert isinstance(weight, RealColumn) and weight.decimals == 2
    assert weight.lower <= min(CELLS["weight"]) and weight.upper >= max(CELLS["weight"])
    assert isinstance(born, DateColumn)
    assert (born.lower, born.upper) == ("1950-01-01", "2009-12-31") and born.bins is not None
    assert {found[name].type for name in ("patient_id", "number")} == {"identifier"}
    assert proposal.left_out.keys() == {"nothing", "note"}
    assert "free text" in proposal.left_out["note"]
    assert proposal.notes[0] == REVIEW


@pytest.mark.parametrize("sample", ["private.csv", pd.DataFrame(CELLS)], ids=["file", "frame"])
def test_without_the_statement_nothing_is_read(sample: Any) -> None:
    """The file does not exist, so it was not read."""
    with pytest.raises(UnusableInput, match="State that this sample is public"):
        propose(sample)


@given(st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=30))
def test_whole_numbers_lie_inside_their_bounds(numbers: list[int]) -> None:
    frame = pa.table({"x": numbers, "y": ["a"] * len(numbers)})
    schema = stated(frame).schema.linked
    column = next((each for each in schema.columns if each.name == "x"), None)
    if isinstance(column, IntegerColumn):  # it may count the rows, or be a boolean
        kept = [number for number in numbers if str(number) not in (column.missing or ())]
        assert column.lower <= min(kept) and column.upper >= max(kept)
        assert column.size <= 22 + column.nullable


@given(st.lists(st.decimals(-(10**9), 10**9, places=3), min_size=1, max_size=30))
def test_numbers_lie_inside_their_bounds(numbers: list[Any]) -> None:
    frame = pa.table({"x": [float(number) for number in numbers], "y": ["a"] * len(numbers)})
    schema = stated(frame).schema.linked
    column = next((each for each in schema.columns if each.name == "x"), None)
    if isinstance(column, IntegerColumn | RealColumn):
        missing = {float(text) for text in column.missing or ()}
        kept = [float(number) for number in numbers if float(number) not in missing]
        assert column.lower <= min(kept) and column.upper >= max(kept)
        assert column.size <= 22 + column.nullable


@given(st.lists(st.text("01289.-+eEinfa ", max_size=9), min_size=1, max_size=30))
def test_any_text_is_declared_or_left_out(texts: list[str]) -> None:
    proposal = stated(pa.table({"x": texts, "y": ["a"] * len(texts)}))
    declared = [column.name for column in proposal.schema.linked.columns]
    assert ("x" in declared) != ("x" in proposal.left_out)


def test_tiny_numbers_keep_their_scale() -> None:
    column = stated(pl.DataFrame({"x": [1e-7, 2.5e-7, 4e-7]})).schema.linked.attribute("x")
    assert isinstance(column, RealColumn) and 0 <= column.lower <= 1e-7
    assert 4e-7 <= column.upper < 5e-7 and column.decimals is None


def test_the_schema_is_valid_as_json() -> None:
    schema = stated(pl.DataFrame(CELLS)).schema
    assert Schema.model_validate_json(schema.model_dump_json(exclude_none=True)) == schema


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "no column"),
        ("a,a\n1,2\n", "two columns of the same name"),
        ("name\n" + "".join(f"n{i}\n" for i in range(500)), "name has more than 100 different"),
        ("pid\n" + "".join(f"{i}\n" for i in range(500)), "no column"),
    ],
)
def test_what_cannot_be_declared_is_refused(content: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "sample.csv"
    path.write_text(content)
    with pytest.raises(UnusableInput, match=told):
        stated(path)


@pytest.mark.parametrize("name", ["sample.parquet", "sample.csv.gz"])
def test_a_broken_file_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"neither")
    with pytest.raises(UnusableInput, match="cannot be read"):
        stated(path)


class TestTwoLevels:
    GROUPS = pl.DataFrame({"hid": list(range(60)), "town": ["a", "b", "c"] * 20})
    PEOPLE = pl.DataFrame(
        {"hid": [i // 2 for i in range(117)] + [0] * 3, "age": [i % 90 for i in range(120)]}
    )

    def test_both_samples_make_one_schema(self) -> None:
        proposal = propose_two_level(self.GROUPS, self.PEOPLE, sample_is_public=True)
        schema = proposal.schema
        assert isinstance(schema, TwoLevelSchema)
        assert (schema.groups.key, schema.individuals.group_key) == ("hid", "hid")
        assert schema.max_group_size == 5
        assert schema.linked.names == ["town", "age"]
        with pytest.raises(UnusableInput, match="State that this sample is public"):
            propose_two_level("homes.csv", "people.csv")

    def test_keys_with_different_names_are_given(self, tmp_path: Path) -> None:
        groups, people = tmp_path / "homes.csv", tmp_path / "people.csv"
        self.GROUPS.rename({"hid": "id"}).write_csv(groups)
        self.PEOPLE.write_csv(people)
        with pytest.raises(UnusableInput, match="share 0 columns"):
            propose_two_level(groups, people, sample_is_public=True)
        keys = {"key": "id", "group_key": "hid"}
        proposal = propose_two_level(groups, people, **keys, sample_is_public=True)
        assert proposal.schema.places == 5
        with pytest.raises(UnusableInput, match="individuals has no column 'home'"):
            propose_two_level(groups, people, key="id", group_key="home", sample_is_public=True)


class TestHeader:
    def test_a_header_becomes_a_declaration_to_fill_in(self) -> None:
        found = skeleton('pid,"ward, unit",birth_date,age')
        assert [each["type"] for each in found["columns"]] == [
            "identifier", "categorical", "date", "integer",
        ]  # fmt: skip
        with pytest.raises(UnusableInput) as refused:
            parse_schema(found)
        assert len(refused.value.errors) == 4

    @pytest.mark.parametrize("header", ["", "a,,b", "a,b,a"])
    def test_names_must_be_distinct(self, header: str) -> None:
        with pytest.raises(UnusableInput, match="header"):
            skeleton(header)


SMARTNOISE = """
"":
  clinic:
    patients:
      row_privacy: false
      max_ids: 3
      pid: {type: string, private_id: true}
      age: {type: int, lower: 0, upper: 99}
"""
CSVW = {
    "tableSchema": {
        "columns": [{"name": "age", "datatype": {"base": "integer", "minimum": 0, "maximum": 99}}]
    }
}


class TestCodeBooks:
    def test_metadata_of_smartnoise(self, tmp_path: Path) -> None:
        path = tmp_path / "patients.yaml"
        path.write_text(SMARTNOISE)
        imported = from_code_book(path, "smartnoise")
        assert [column.name for column in imported.schema.columns] == ["pid", "age"]
        assert imported.protection is not None and imported.protection.max_rows_per_unit == 3

    def test_csvw(self, tmp_path: Path) -> None:
        path = tmp_path / "metadata.json"
        path.write_text(json.dumps(CSVW))
        from_file, given = from_code_book(path, "csvw"), from_code_book(CSVW, "csvw")
        assert from_file == given and numeric_columns(from_file.schema)["age"].line.upper == 99

    def test_a_domain(self) -> None:
        imported = from_code_book({"age": 85}, "mbi")
        assert numeric_columns(imported.schema)["age"].line.upper == 84

    @pytest.mark.parametrize("format", ["csvw", "ddi", "smartnoise", "mbi"])
    @pytest.mark.parametrize("content", ["[1]", "{", '{"a": "b"}'])
    def test_others_are_refused(self, format: Any, content: str, tmp_path: Path) -> None:
        path = tmp_path / "book.json"
        path.write_text(content)
        with pytest.raises(UnusableInput):
            from_code_book(path, format)
        with pytest.raises(UnusableInput, match="cannot be read"):
            from_code_book(path.with_name("none"), format)
