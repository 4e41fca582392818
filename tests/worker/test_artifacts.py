"""Files that are safe in spreadsheets and contain what was released."""

import csv
import io
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from scrim.spec.schema import Schema
from scrim.spec.two_level import LinkedSchema, TwoLevelSchema
from service.data.storage import open_storage
from synth.models.released import AnswerTable
from synth.run import run
from synth.table import Chunk, draw_values
from synth.table.linking import draw_groups, unlink
from tests.support import ADD_REMOVE, coded_schema, coded_table, release
from worker import artifacts
from worker.artifacts import (
    answers_as_csv,
    as_one_table,
    rows_as_csv,
    write_artifacts,
)

COLOUR = {"type": "categorical", "values": ["=red", "blue"], "other": "@"}


def make_rows(count: int) -> tuple[Schema, Chunk]:
    schema = Schema.model_validate(
        {
            "columns": [
                {"name": "=cmd", "type": "categorical", "values": ["=1", "b"], "other": "+x"},
                {"name": "n", "type": "integer", "lower": -5, "upper": 5, "bins": {"width": 1}},
                {"name": "pid", "type": "identifier"},
            ]
        }
    )
    rng = np.random.default_rng(0)
    codes = {c.name: rng.integers(c.size, size=count) for c in schema.attributes}
    return schema, draw_values(schema, codes, rng)


def test_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    schema, rows = make_rows(100)
    whole = b"".join(rows_as_csv(schema, rows))
    monkeypatch.setattr(artifacts, "_ROWS_AT_ONCE", 7)
    assert b"".join(rows_as_csv(schema, rows)) == whole
    header, *body = csv.reader(io.StringIO(whole.decode()))
    assert header == ["'=cmd", "n"]
    assert len(body) == 100
    assert {line[0] for line in body} == {"'=1", "b", "'+x", ""}
    assert {"-5", "5", ""} <= {line[1] for line in body}


def test_no_rows_are_a_header() -> None:
    assert b"".join(rows_as_csv(*make_rows(0))) == b"'=cmd,n\n"


def test_answers() -> None:
    table = AnswerTable(
        items=["=a,b", "c"],
        queries=["=a=1 & b=2", 'c="x"'],
        fractions=np.array([0.25, -0.5]),
        counts=np.array([5.0, -10]),
        standard_errors=None,
        count_standard_errors=None,
        bases=["measured", "independent"],
    )
    header, first, second = csv.reader(io.StringIO(b"".join(answers_as_csv(table)).decode()))
    assert header == [
        *("item", "query", "value", "count", "standard_error", "count_standard_error", "basis")
    ]
    assert first == ["'=a,b", "'=a=1 & b=2", "0.25", "5.0", "", "", "measured"]
    assert second == ["c", 'c="x"', "-0.5", "-10.0", "", "", "independent"]
    with_errors = replace(
        table,
        standard_errors=np.array([0.125, 0.25]),
        count_standard_errors=np.array([1.0, 2.0]),
    )
    _, *lines = csv.reader(io.StringIO(b"".join(answers_as_csv(with_errors)).decode()))
    assert [line[4:6] for line in lines] == [["0.125", "1.0"], ["0.25", "2.0"]]


@pytest.mark.random
def test_both_formats_hold_the_same_answers(tmp_path: Path) -> None:
    schema = coded_schema({"a": 2, "b": 3})
    outputs = {"formats": ["csv", "parquet"]}
    spec = release({"name": "gaussian"}, outputs=outputs)
    done = run(spec, coded_table(schema, [[0, 1]] * 50), protection=ADD_REMOVE, delta=1e-9)
    storage = open_storage(f"file://{tmp_path}")
    written = write_artifacts(storage, done, outputs["formats"], folder=tmp_path)
    content = {name: b"".join(storage.read(each.stored.key)) for name, each in written.items()}
    table = pq.read_table(io.BytesIO(content["answers.parquet"])).to_pylist()
    lines = list(csv.DictReader(io.StringIO(content["answers.csv"].decode())))
    assert [{name: str(value) for name, value in row.items()} for row in table] == lines
    assert done.answers is not None and done.answers.count_standard_errors is not None
    assert np.all(done.answers.count_standard_errors > 0)
    written_errors = [float(line["count_standard_error"]) for line in lines]
    assert written_errors == done.answers.count_standard_errors.tolist()


def make_groups(count: int) -> tuple[LinkedSchema, Chunk]:
    schema, _ = make_rows(0)
    two_level = TwoLevelSchema.model_validate(
        {
            "groups": {"key": "=hid", "columns": [{**COLOUR, "name": "-colour"}]},
            "individuals": {"group_key": "@home", "columns": schema.columns},
            "max_group_size": 3,
        }
    )
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 4, size=count)
    return two_level.linked, draw_groups(two_level.linked, {}, sizes=sizes, rng=rng)


def read(pieces: Iterable[bytes]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(b"".join(pieces).decode())))


def test_groups_and_individuals_are_two_tables_that_join() -> None:
    schema, rows = make_groups(50)
    tables = {name: read(rows_as_csv(*each)) for name, each in unlink(rows, schema).items()}
    assert list(tables["groups"][0]) == ["'=hid", "'-colour"]
    assert list(tables["individuals"][0]) == ["'@home", "'=cmd", "n"]
    assert [row["'=hid"] for row in tables["groups"]] == [str(1 + i) for i in range(50)]
    members = Counter(row["'@home"] for row in tables["individuals"])
    assert members.keys() == {row["'=hid"] for row in tables["groups"]}
    assert set(members.values()) == {1, 2, 3}
    assert {row["'-colour"] for row in tables["groups"]} <= {"'=red", "blue", "'@", ""}


def test_linked_rows_tell_their_group_by_its_number() -> None:
    schema, rows = make_groups(50)
    lines = read(rows_as_csv(*as_one_table(schema, rows)))
    assert list(lines[0]) == ["'=hid", "'-colour", "'=cmd", "n"]
    colours: dict[str, set[str]] = {}
    for line in lines:
        colours.setdefault(line["'=hid"], set()).add(line["'-colour"])
    assert list(colours) == [str(1 + i) for i in range(50)]
    assert {len(each) for each in colours.values()} == {1}
