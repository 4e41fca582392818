"""Data frames of three libraries go in as Parquet and come out as they were declared."""

import hashlib
import io
import sys
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scrim import UnusableInput
from scrim.frames import ReleasedTable, read_pandas, read_polars
from scrim.spec.schema import Schema
from scrim.spec.two_level import TwoLevelSchema
from synth.table import Chunk, read_csv, write_parquet
from synth.table.linking import unlink
from tests.scrim import column_types
from tests.scrim.support import DATASET, RELEASE, SCHEMA, Script, answer, problem
from worker.artifacts import rows_as_csv

pytestmark = pytest.mark.usefixtures("both_ways")

CELLS: dict[str, list[Any]] = {"sex": ["F", None, "M"], "age": [30, 41, None]}
FRAMES: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pd.DataFrame(CELLS),
    "pandas, typed": lambda: pd.DataFrame(CELLS).astype({"sex": "category", "age": "Int64"}),
    "polars": lambda: pl.DataFrame(CELLS),
    "polars, lazy": lambda: pl.LazyFrame(CELLS),
    "pyarrow": lambda: pa.table(CELLS),
}

DECLARED: dict[str, Any] = {
    "columns": [
        {"name": "=sum", "type": "categorical", "values": ["b", "a", "\uff0da", "'-a"]},
        {"name": "age", "type": "integer", "lower": 10, "upper": 99},
        {"name": "weight", "type": "real", "lower": 0.0, "upper": 9.0, "decimals": 1},
        {"name": "pid", "type": "identifier"},
    ]
}
LABELS = ["b", "a", "\uff0da", "'-a", "other"]


class TestIn:
    @pytest.mark.parametrize("library", FRAMES)
    def test_a_frame_is_sent_as_parquet(self, library: str) -> None:
        script = Script(answer(DATASET, 201), answer(DATASET, 202), answer(DATASET))
        frame = FRAMES[library]()
        script.client().datasets.upload(frame, schema=SCHEMA, population="p1", name="people")
        sent = script.requests[1]
        assert sent.headers["Content-Type"] == "application/vnd.apache.parquet"
        assert sent.headers["Content-Length"] == str(len(sent.content))
        table = pq.read_table(io.BytesIO(sent.content))
        assert table.column_names == list(CELLS)
        assert [None if x is None else str(x) for x in table["sex"].to_pylist()] == CELLS["sex"]
        assert table["age"].to_pylist() == CELLS["age"]

    def test_a_kind_of_frame_is_one(self) -> None:
        Mine = type("Mine", (pd.DataFrame,), {})
        script = Script(answer(DATASET, 202))
        script.client().datasets.upload_content("d1", Mine(CELLS))
        assert pq.read_table(io.BytesIO(script.requests[0].content)).num_rows == 3

    def test_a_frame_without_a_name_gets_one(self) -> None:
        script = Script(answer(DATASET, 201), answer(DATASET, 202), answer(DATASET))
        script.client().datasets.upload(pd.DataFrame(CELLS), schema=SCHEMA, population="p1")
        assert b'"data frame"' in script.requests[0].content

    def test_a_message_about_a_frame_quotes_no_cell(self) -> None:
        mixed = pd.DataFrame({"a": ["secret-name", 17, {"nested"}]})
        with pytest.raises(UnusableInput, match="one type") as caught:
            Script().client().datasets.upload_content("d1", mixed)
        assert caught.value.__cause__ is None and caught.value.__context__ is None


def rows() -> Chunk:
    """Four rows as they are stored: codes, offsets and floats; the last one is missing."""
    return {
        "=sum": np.array([0, 2, 3, 5], np.uint8),
        "age": np.array([0, 89, 5, 90], np.uint8),
        "weight": np.array([0.0, 1.5, 9.0, np.nan]),
    }


@pytest.fixture(params=["parquet", "csv"])
def released(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, bytes]:
    """A file of synthetic rows, written as workers write it."""
    schema = Schema.model_validate(DECLARED)
    if request.param == "csv":
        return "synthetic.csv", b"".join(rows_as_csv(schema, rows()))
    path = tmp_path / "written.parquet"
    write_parquet(path, schema, [rows()])
    return "synthetic.parquet", path.read_bytes()


def script_with(*files: tuple[str, bytes], schema: httpx.Response | None = None) -> Script:
    artifacts = [
        {
            "name": name,
            "size": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            "media_type": "text/csv",
        }
        for name, content in files
    ]
    release = answer(RELEASE | {"artifacts": artifacts, "dataset_id": "d1"})
    content = files[0][1] if files else b""
    asked = [schema] if schema else []
    return Script(release, *asked, release, httpx.Response(200, content=content))


def known_schema(name: str) -> httpx.Response | None:
    """The service's response about the dataset; not requested if the file contains its schema."""
    return answer(DATASET | {"schema": DECLARED}) if name.endswith(".csv") else None


HOMES: dict[str, Any] = {
    "groups": {
        "key": "hid",
        "columns": [{"name": "town", "type": "categorical", "values": ["a", "b"]}],
    },
    "individuals": {
        "group_key": "home",
        "columns": [{"name": "age", "type": "integer", "lower": 0, "upper": 99}],
    },
    "max_group_size": 4,
}


def released_homes(format: str) -> list[tuple[str, bytes]]:
    """The files of two homes, of one person and of two, as workers write them."""
    linked = TwoLevelSchema.model_validate(HOMES).linked
    rows: Chunk = {
        "hid": np.array([0, 1, 1]),
        "town": np.array([0, 1, 1], np.uint8),
        "age": np.array([30, 100, 7], np.uint8),
    }
    written = []
    for name, (schema, table) in unlink(rows, linked).items():
        if format == "csv":
            content = b"".join(rows_as_csv(schema, table))
        else:
            buffer = io.BytesIO()
            write_parquet(buffer, schema, [table])
            content = buffer.getvalue()
        written.append((f"synthetic_{name}.{format}", content))
    return written


class TestOut:
    def test_pandas(self, released: tuple[str, bytes]) -> None:
        script = script_with(released, schema=known_schema(released[0]))
        frame = script.client().releases.to_pandas("r1")
        assert list(frame.columns) == ["=sum", "age", "weight"]
        assert list(frame["=sum"].cat.categories) == LABELS
        assert [str(frame[name].dtype) for name in ("age", "weight")] == ["Int64", "Float64"]
        assert frame["=sum"].tolist()[:3] == ["b", "\uff0da", "'-a"]
        assert frame["age"].tolist()[:3] == [10, 99, 15]
        assert frame["weight"].tolist()[:3] == [0.0, 1.5, 9.0]
        assert frame.iloc[3].isna().all()

    def test_polars(self, released: tuple[str, bytes]) -> None:
        script = script_with(released, schema=known_schema(released[0]))
        frame = script.client().releases.to_polars("r1")
        assert frame.schema == {"=sum": pl.Enum(LABELS), "age": pl.Int64, "weight": pl.Float64}
        assert frame.rows() == [
            ("b", 10, 0.0),
            ("\uff0da", 99, 1.5),
            ("'-a", 15, 9.0),
            (None, None, None),
        ]

    def test_parquet_is_preferred(self, tmp_path: Path) -> None:
        path = tmp_path / "written.parquet"
        write_parquet(path, Schema.model_validate(DECLARED), [rows()])
        script = script_with(("synthetic.parquet", path.read_bytes()), ("synthetic.csv", b""))
        # The schema in the file takes precedence over the caller's.
        assert script.client().releases.to_polars("r1", schema=SCHEMA).height == 4

    def test_an_analyst_gives_the_schema_of_a_csv_file(self) -> None:
        content = b"".join(rows_as_csv(Schema.model_validate(DECLARED), rows()))
        script = script_with(("synthetic.csv", content), schema=problem(403, "scope-missing"))
        with pytest.raises(UnusableInput, match=r"give it as schema="):
            script.client().releases.to_polars("r1")
        script = script_with(("synthetic.csv", content))
        assert script.client().releases.to_polars("r1", schema=DECLARED).height == 4

    @pytest.mark.parametrize("format", ["parquet", "csv"])
    def test_two_levels_are_two_frames_that_join(self, format: str) -> None:
        files = released_homes(format)
        declared = answer(DATASET | {"schema": HOMES}) if format == "csv" else None
        groups, individuals = files
        homes = script_with(groups, individuals, schema=declared).client()
        people = script_with(individuals, groups, schema=declared).client()
        left = homes.releases.to_polars("r1", table="groups")
        right = people.releases.to_polars("r1", table="individuals")
        joined = right.join(left, left_on="home", right_on="hid")
        assert joined.rows() == [(1, 30, "a"), (2, None, "b"), (2, 7, "b")]
        again = script_with(individuals, groups, schema=declared).client()
        assert again.releases.to_pandas("r1", table="individuals")["home"].tolist() == [1, 2, 2]
        with pytest.raises(UnusableInput, match="table='groups' or 'individuals'"):
            script_with(*files).client().releases.to_polars("r1")

    def test_further_sets_of_rows(self) -> None:
        content = b"".join(rows_as_csv(Schema.model_validate(DECLARED), rows()))
        second = script_with(("synthetic_2.csv", content), ("synthetic.csv", b"")).client()
        assert second.releases.to_polars("r1", draw=2, schema=DECLARED).height == 4
        with pytest.raises(
            UnusableInput, match=r"no file synthetic_3\.parquet or synthetic_3\.csv"
        ):
            script_with(("synthetic.csv", b"")).client().releases.to_polars("r1", draw=3)

    def test_a_set_of_linked_rows(self) -> None:
        (_, groups), (_, individuals) = released_homes("parquet")
        files = (
            ("synthetic_2_individuals.parquet", individuals),
            ("synthetic_2_groups.parquet", groups),
        )
        found = script_with(*files).client().releases.to_polars("r1", table="individuals", draw=2)
        assert found.height == 3

    def test_a_release_without_rows_says_so(self) -> None:
        with pytest.raises(UnusableInput, match=r"no file synthetic\.parquet"):
            script_with(("answers.csv", b"")).client().releases.to_pandas("r1")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_missing_library_is_named(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    script = script_with(("synthetic.csv", b""))
    with pytest.raises(UnusableInput, match=rf"needs {library}.*scrim\[frames\]"):
        getattr(script.client().releases, f"to_{library}")("r1", schema=DECLARED)


class TestEveryType:
    """Dates stay dates, and kinds of missing values are told apart, from CSV and from Parquet."""

    @pytest.fixture(params=["csv", "parquet"])
    def table(self, request: pytest.FixtureRequest, tmp_path: Path) -> ReleasedTable:
        chunks = list(read_csv(io.BytesIO(column_types.CSV.encode()), column_types.SCHEMA))
        path = tmp_path / f"synthetic.{request.param}"
        if request.param == "csv":
            [chunk] = chunks
            path.write_bytes(b"".join(rows_as_csv(column_types.SCHEMA, chunk)))
            return ReleasedTable(path, column_types.SCHEMA)
        write_parquet(path, column_types.SCHEMA, chunks)
        return ReleasedTable(path, None)

    def test_in_pandas(self, table: ReleasedTable) -> None:
        frame = read_pandas(table)
        assert frame["pain"].cat.ordered and frame["smoker"].dtype == "boolean"
        assert frame["born"].dtype == frame["admitted"].dtype == "datetime64[us]"
        assert frame["born"][1] == pd.Timestamp("1999-12-01")
        assert frame["admitted"][0] == pd.Timestamp("2024-05-17 14:00")
        assert frame["pressure"].dtype == "Int64" and frame["cost"].dtype == "Float64"
        assert frame["cost"].tolist()[:2] == [12.5, 480.0]
        assert frame["pressure.missing"].astype("string").fillna("-").tolist() == [
            "-",
            "unknown",
            "refused",
            "-",
            "-",
        ]
        assert frame["ward.missing"].tolist()[2:4] == ["refused", "unknown"]
        assert frame["pain"].tolist()[::4] == ["none", "other"]
        assert frame["diagnosis"].isna().tolist() == [False, False, True, False, False]

    def test_in_polars(self, table: ReleasedTable) -> None:
        frame = read_polars(table)
        assert frame.schema["born"] == pl.Date and frame.schema["admitted"] == pl.Datetime("us")
        assert frame.schema["smoker"] == pl.Boolean
        assert frame["smoker"].to_list() == [True, False, None, None, None]
        assert frame["born"].to_list()[:2] == [date(1969, 5, 1), date(1999, 12, 1)]
        assert frame["admitted"].to_list()[0] == datetime(2024, 5, 17, 14)
        assert frame["born.missing"].to_list() == [None, None, "refused", "unknown", None]
        assert frame["cost"].to_list() == [12.5, 480.0, None, None, 0.0]
