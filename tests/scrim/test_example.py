"""The example table is the same everywhere, fits its schema and is worth protecting."""

import hashlib
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from scrim.comparison import ComparedShare, contains, read_answers, read_rows, table_with
from scrim.demo import COMPARED_SHARES, UNPLANNED, release_body
from scrim.example import EXAMPLE_COLUMNS, QUESTIONS, ROWS, SCHEMA, admissions, write_example
from scrim.records import Answer
from scrim.spec.columns import CategoricalColumn, IntegerColumn, RealColumn
from scrim.spec.population import Protection
from scrim.spec.release import ReleaseRequest
from scrim.spec.schema import Schema
from synth.planning.choice import resolve

MOST_CELLS = 2_000_000


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return list(admissions())


class TestExample:
    def test_every_copy_is_the_same(self, tmp_path: Path) -> None:
        digests = set()
        for name in ("a.csv", "b.csv"):
            write_example(tmp_path / name)
            digests.add(hashlib.sha256((tmp_path / name).read_bytes()).hexdigest())
        assert len(digests) == 1

    def test_it_is_large_enough(self, rows: list[dict[str, Any]]) -> None:
        assert len(rows) == ROWS == 20_000
        assert len(EXAMPLE_COLUMNS) >= 12
        assert all(list(row) == EXAMPLE_COLUMNS for row in rows)

    def test_every_value_is_declared(self, rows: list[dict[str, Any]]) -> None:
        for column in Schema.model_validate(SCHEMA).attributes:
            values = {row[column.name] for row in rows}
            if isinstance(column, CategoricalColumn):
                assert values == set(column.values)
                assert column.other in column.values
            else:
                assert isinstance(column, IntegerColumn | RealColumn)
                assert column.lower <= min(values) <= max(values) <= column.upper
            assert not column.nullable

    def test_no_bin_is_empty(self, rows: list[dict[str, Any]]) -> None:
        for column in SCHEMA["columns"]:
            edges = column.get("bins", {}).get("edges", [])
            for low, high in pairwise(edges):
                inside = sum(low <= row[column["name"]] < high for row in rows)
                assert inside > ROWS / 100, (column["name"], low, high)

    def test_columns_depend_on_each_other(self, rows: list[dict[str, Any]]) -> None:
        severe = ComparedShare("", {"severity": "severe"}, {"intensive_care": "yes"}).of_rows(rows)
        mild = ComparedShare("", {"severity": "mild"}, {"intensive_care": "yes"}).of_rows(rows)
        assert severe is not None and mild is not None
        assert severe > 5 * mild

    def test_the_release_is_one_that_works(self) -> None:
        schema = Schema.model_validate(SCHEMA)
        body = ReleaseRequest.model_validate(release_body("d1"))
        resolve(body, schema, Protection(), 1e-9)
        assert {name for question in QUESTIONS for name in question} == set(EXAMPLE_COLUMNS)
        assert math.prod(column.size for column in schema.attributes) < MOST_CELLS

    def test_each_shown_share_is_answered_by_a_released_table(self) -> None:
        for share in COMPARED_SHARES:
            assert any(set(share.columns) <= set(question) for question in QUESTIONS)
        assert not any(set(UNPLANNED.columns) <= set(question) for question in QUESTIONS)


class TestComparison:
    @pytest.mark.parametrize(
        ("value", "wanted", "found"),
        [
            ("yes", "yes", True),
            ("no", "yes", False),
            ("45", "[45, 65)", True),
            ("64.9", "[45, 65)", True),
            ("65", "[45, 65)", False),
            ("44", "[45, 65)", False),
            ("99", "[65, 99]", True),
        ],
    )
    def test_a_value_in_an_interval(self, value: str, wanted: str, found: bool) -> None:
        assert contains(value, wanted) is found

    def test_answers_and_rows_tell_the_same(self, tmp_path: Path) -> None:
        (tmp_path / "answers.csv").write_text(
            "item,query,value,count,standard_error,count_standard_error,basis\n"
            '"age,sex","age=[0, 65) & sex=F",0.1,10,,,model\n'
            '"age,sex","age=[0, 65) & sex=M",0.3,30,,,model\n'
            '"age,sex","age=[65, 99] & sex=F",0.6,60,0.01,0.5,measured\n'
            "sex,sex=F,0.7,70,,,measured\n"
        )
        (tmp_path / "rows.csv").write_text("age,sex\n" + "3,F\n" + "64,M\n" * 3 + "65,F\n" * 6)
        share = ComparedShare("", {"age": "[0, 65)"}, {"sex": "F"})
        tables = read_answers(tmp_path / "answers.csv")
        assert share.of_answers(table_with(share.columns, tables)) == pytest.approx(0.25)
        assert share.of_rows(read_rows(tmp_path / "rows.csv")) == pytest.approx(0.25)
        assert len(table_with(["sex"], tables)) == 1

    def test_answers_of_an_earlier_version_are_read(self, tmp_path: Path) -> None:
        (tmp_path / "answers.csv").write_text(
            "item,query,fraction,count,standard_error,count_standard_error\nsex,sex=F,0.7,70,,\n"
        )
        ((found,),) = read_answers(tmp_path / "answers.csv").values()
        assert (found.value, found.basis) == (0.7, None)

    def test_a_share_of_nothing_is_unknown(self) -> None:
        none = Answer(item="sex", query="sex=F", value=0.0, count=0.0)
        assert ComparedShare("", {}, {"sex": "F"}).of_answers([none]) is None
        assert ComparedShare("", {}, {"sex": "F"}).of_rows([]) is None
