import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrim.spec.schema import Schema
from synth.table.chunk import Chunk, TableError
from synth.table.encoding import draw_values
from synth.table.parquet_file import PARQUET_SCHEMA_KEY, read_parquet, write_parquet
from tests.synth.table.strategies import (
    CANARY,
    assert_no_canary,
    codes_of,
    rows_of,
    same_chunks,
    schemas,
)

PERSON = Schema.model_validate(
    {
        "columns": [
            {"name": "sex", "type": "categorical", "values": ["1", "2"]},
            {"name": "age", "type": "integer", "lower": 0, "upper": 99},
            {"name": "id", "type": "identifier"},
        ]
    }
)


def parquet(columns: dict[str, Any], **options: Any) -> bytes:
    target = io.BytesIO()
    pq.write_table(pa.table(columns), target, **options)
    return target.getvalue()


def read(data: bytes, schema: Schema = PERSON, **options: Any) -> list[Chunk]:
    return list(read_parquet(io.BytesIO(data), schema, **options))


GOOD = {
    "sex": [1.0, 2.0, None, 7.0],
    "x": [[1]] * 4,
    "id": [5, 5, 6, None],
    "age": ["3", "x", "", "1e9"],
}


@given(st.data())
def test_what_is_written_reads_back_the_same(data: st.DataObject) -> None:
    # Kinds of missing values are beside their column, and are not read back.
    schema = data.draw(schemas(kinds=False))
    codes = data.draw(codes_of(schema, rows=data.draw(st.integers(0, 5))))
    chunk = draw_values(schema, codes, np.random.default_rng(0))
    once, twice = io.BytesIO(), io.BytesIO()
    write_parquet(once, schema, [chunk, chunk])
    back = read(once.getvalue(), schema)
    write_parquet(twice, schema, back)
    assert same_chunks(back, read(twice.getvalue(), schema))
    if all(getattr(column, "decimals", None) is None for column in schema.attributes):
        assert same_chunks(back, [chunk, chunk])


def test_a_written_file_has_types_nulls_and_its_schema(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    write_parquet(path, PERSON, read(parquet(GOOD)))
    table = pq.read_table(path)
    assert table.schema.field("age").type == pa.int64()
    assert table.to_pydict() == {"sex": ["1", "2", None, "other"], "age": [3, None, None, 99]}
    assert Schema.model_validate_json(table.schema.metadata[PARQUET_SCHEMA_KEY]) == PERSON


def test_columns_are_found_by_name_and_others_ignored(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    path.write_bytes(parquet(GOOD))
    for source in (path, str(path)):
        (chunk,) = read_parquet(source, PERSON)
        assert list(chunk) == ["sex", "age", "id"]
        assert chunk["sex"].tolist() == [0, 1, 3, 2]
        assert chunk["age"].tolist() == [3, 100, 100, 99]
        assert chunk["id"][0] == chunk["id"][1] != chunk["id"][2]


def test_names_with_dots_are_names() -> None:
    schema = Schema.model_validate(
        {"columns": [{"name": "x.y", "type": "integer", "lower": 0, "upper": 9}]}
    )
    data = parquet({"x": [{"y": 1}], "x.y": [5]})
    assert rows_of(read(data, schema)) == [(5,)]


def test_row_groups_are_cut_into_chunks() -> None:
    n = 10_000
    data = parquet({"sex": [1] * n, "age": range(n), "id": range(n)}, row_group_size=n)
    sizes = [len(chunk["sex"]) for chunk in read(data, chunk_rows=999)]
    assert sum(sizes) == n
    assert max(sizes) <= 999
    with pytest.raises(ValueError, match="chunk_rows"):
        read(data, chunk_rows=0)


def test_an_empty_file_has_no_rows() -> None:
    data = parquet({"sex": pa.array([], pa.string()), "age": pa.nulls(0), "id": pa.nulls(0)})
    assert rows_of(read(data)) == []


def broken_text() -> Any:
    return pa.array([f"{CANARY}\xff".encode("latin-1")]).view(pa.string())


def repeated() -> bytes:
    target = io.BytesIO()
    columns = [pa.array([CANARY])] * 4
    pq.write_table(pa.table(columns, names=["sex", "age", "age", "id"]), target)
    return target.getvalue()


ROW = {"sex": [CANARY], "age": [CANARY], "id": [CANARY]}
FAULTS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "not Parquet"),
    "text": (f"sex,age\n{CANARY},1\n".encode(), "not Parquet"),
    "cut": (parquet(ROW)[:-20], "not Parquet"),
    "missing": (parquet({"sex": [CANARY], "id": [CANARY]}), "'age' is missing"),
    "repeated": (repeated(), "'age' appears more than once"),
    "list": (parquet(ROW | {"age": [[CANARY]]}), "'age' holds nested values"),
    "struct": (parquet(ROW | {"sex": [{CANARY: CANARY}]}), "'sex' holds nested values"),
    "dates": (
        parquet(ROW | {"age": pa.array([1], pa.date32())}),
        "'age' holds values of type date",
    ),
    "broken text": (parquet(ROW | {"id": broken_text()}), "'id' holds text that is not UTF-8"),
    "bytes": (parquet(ROW | {"sex": broken_text().view(pa.binary())}), "'sex' .* not UTF-8"),
}


@pytest.mark.parametrize(("data", "problem"), FAULTS.values(), ids=FAULTS.keys())
def test_faults_are_named_without_any_value(data: bytes, problem: str) -> None:
    with pytest.raises(TableError, match=problem) as caught:
        read(data)
    assert_no_canary(caught.value)


@pytest.mark.parametrize("compression", ["none", "snappy"])
def test_damaged_files_are_read_or_refused(compression: str) -> None:
    whole = parquet({name: cells * 50 for name, cells in ROW.items()}, compression=compression)
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(300):
        data = bytearray(whole)
        data[rng.integers(len(data))] ^= rng.integers(1, 256)
        try:
            read(bytes(data))
        except TableError as error:
            refused += 1
            assert_no_canary(error)
    assert refused


def test_pages_are_checked_where_they_have_checksums() -> None:
    data = parquet({**ROW, "sex": [CANARY]}, write_page_checksum=True, compression="none")
    changed = data.replace(CANARY.encode(), CANARY.lower().encode(), 1)
    with pytest.raises(TableError, match="damaged") as caught:
        read(changed)
    assert_no_canary(caught.value)


def test_a_source_must_be_seekable_and_must_exist(tmp_path: Path) -> None:
    class Upload(io.BytesIO):
        def seekable(self) -> bool:
            return False

    with pytest.raises(TableError, match="seekable"):
        list(read_parquet(Upload(parquet(ROW)), PERSON))
    with pytest.raises(FileNotFoundError):
        list(read_parquet(tmp_path / "none.parquet", PERSON))


@pytest.mark.parametrize("error", [ConnectionResetError, MemoryError, pa.ArrowMemoryError])
def test_a_failing_system_is_not_a_fault_of_the_table(error: type[Exception]) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise error(104, "gone")

    with pytest.raises(error):
        list(read_parquet(Broken(parquet(ROW)), PERSON))
