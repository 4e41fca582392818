import csv
import gzip
import io
import tracemalloc
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrim.spec.schema import Schema
from synth.table import bytestream, csv_file
from synth.table.chunk import Chunk, TableError
from synth.table.csv_file import read_csv, write_csv
from synth.table.encoding import codec_of, draw_values
from tests.synth.table.strategies import (
    CANARY,
    LABELS,
    NUMBER_TEXTS,
    assert_no_canary,
    codes_of,
    rows_of,
    same_chunks,
    schemas,
)

PERSON = Schema.model_validate(
    {
        "columns": [
            {"name": "sex", "type": "categorical", "values": ["F", "M"]},
            {"name": "age", "type": "integer", "lower": 0, "upper": 99},
            {"name": "income", "type": "real", "lower": 0, "upper": 100, "decimals": 2},
        ]
    }
)
ONE_COLUMN = Schema.model_validate(
    {"columns": [{"name": "sex", "type": "categorical", "values": ["F", "M", ""]}]}
)


def read(data: bytes, schema: Schema = PERSON, **options: Any) -> list[Chunk]:
    return list(read_csv(io.BytesIO(data), schema, **options))


def written(schema: Schema, chunks: list[Chunk]) -> bytes:
    target = io.BytesIO()
    write_csv(target, schema, chunks)
    return target.getvalue()


class Upload:
    """A stream that can only be read forward, in pieces of its own choice."""

    def __init__(self, data: bytes, step: int) -> None:
        self._data = data
        self._step = step

    def read(self, size: int) -> bytes:
        size = min(size, self._step)
        piece, self._data = self._data[:size], self._data[size:]
        return piece


# Round trips


@given(st.data())
def test_what_is_written_reads_back_the_same(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    codes = data.draw(codes_of(schema, rows=data.draw(st.integers(0, 5))))
    chunk = draw_values(schema, codes, np.random.default_rng(0))
    # Drawn values have the declared digits, except in a bin too narrow for any.
    text = written(schema, [chunk, chunk])
    assert same_chunks(read(text, schema), read(written(schema, read(text, schema)), schema))
    if all(getattr(column, "decimals", None) is None for column in schema.attributes):
        assert same_chunks(read(text, schema), [chunk, chunk])


@given(st.data(), st.integers(0, 15))
def test_reals_with_declared_digits_read_back_the_same(data: st.DataObject, decimals: int) -> None:
    column = {"name": "x", "type": "real", "lower": -1e6, "upper": 1e6, "decimals": decimals}
    schema = Schema.model_validate({"columns": [column | {"bins": {"count": 3}}]})
    codes = data.draw(codes_of(schema, rows=5))
    chunk = draw_values(schema, codes, np.random.default_rng(data.draw(st.integers(0, 99))))
    text = written(schema, [chunk])
    assert same_chunks(read(text, schema), [chunk])
    cells = [line for line in text.decode().split("\n")[1:] if line]
    assert all(len(cell.partition(".")[2]) == decimals for cell in cells)


@given(st.data())
def test_any_cells_quoted_or_not_are_read_as_they_were_meant(data: st.DataObject) -> None:
    schema = data.draw(schemas(identifiers=True))
    width = len(schema.columns)
    cells = st.lists(LABELS | NUMBER_TEXTS, min_size=width + 1, max_size=width + 1)
    rows = data.draw(st.lists(cells, max_size=5))
    names = [column.name for column in schema.columns]
    order = data.draw(st.permutations(range(width + 1)))
    undeclared = data.draw(LABELS.filter(lambda name: name not in names and "\x00" not in name))
    header = [*names, undeclared]

    target = io.StringIO(newline="")
    ending = data.draw(st.sampled_from(["\n", "\r\n", "\r"]))
    writer = csv.writer(target, quoting=csv.QUOTE_ALL, lineterminator=ending)
    writer.writerows([[row[i] for i in order] for row in [header, *rows]])
    text = data.draw(st.sampled_from(["", "\ufeff"])) + target.getvalue()
    if data.draw(st.booleans()):
        text = text.removesuffix(ending)

    encoded = text.encode()
    if data.draw(st.booleans()):
        encoded = gzip.compress(encoded, 1)
    source = Upload(encoded, data.draw(st.integers(1, 50)))
    expected = {
        column.name: codec_of(column).encode(pa.array([row[i] for row in rows], pa.string()))
        for i, column in enumerate(schema.columns)
    }
    assert rows_of(list(read_csv(source, schema))) == rows_of([expected])


@given(st.binary(max_size=40) | st.text('sexagincom,"\n\r F1', max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for text in (data, b"sex,age,income\n" + data, b'"sex",age,income\nF,1,' + data):
        try:
            chunks = read(text)
        except TableError as error:
            assert error.__context__ is None
        else:
            assert all(len({len(column) for column in chunk.values()}) == 1 for chunk in chunks)


# What a file may look like


def test_only_an_unquoted_empty_cell_is_missing() -> None:
    data = b'sex,x\nF,1\n"",1\n,1\n"M",1\n'
    assert [row[0] for row in rows_of(read(data, ONE_COLUMN))] == [0, 2, 4, 1]


def test_an_empty_line_is_a_row_only_in_a_file_of_one_column() -> None:
    assert rows_of(read(b'sex\nF\n\n""\n\n', ONE_COLUMN)) == [(0,), (4,), (2,), (4,)]
    assert rows_of(read(b"sex,x\nF,1\n\n\r\nM,1\n\n", ONE_COLUMN)) == [(0,), (1,)]


@pytest.mark.parametrize(
    "data", [b"sex,age,income", b"sex,age,income\n", b"\xef\xbb\xbfsex,age,income\r\n\r\n"]
)
def test_a_header_without_rows_is_an_empty_table(data: bytes) -> None:
    assert rows_of(read(data)) == []


def test_undeclared_columns_may_repeat_and_may_be_empty() -> None:
    assert rows_of(read(b"x,sex,,x,\n1,M,,,\n", ONE_COLUMN)) == [(1,)]


def test_paths_and_files_of_several_gzip_members(tmp_path: Path) -> None:
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(b"sex,x\nF,1\nM") + gzip.compress(b",2\n"))
    for source in (path, str(path)):
        assert rows_of(list(read_csv(source, ONE_COLUMN))) == [(0,), (1,)]
    with path.open("rb") as file:
        assert rows_of(list(read_csv(file, ONE_COLUMN))) == [(0,), (1,)]
        assert not file.closed


def test_a_row_may_be_as_large_as_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_file, "PARSED_BYTES", 1000)
    rows = b"F,x\n" * 100 + b'M,"' + b"x" * 990 + b'"\n' + b"F,x\n" * 100
    assert rows_of(read(b"sex,y\n" + rows, ONE_COLUMN)) == [(0,)] * 100 + [(1,)] + [(0,)] * 100


# Structural faults

HEADER = b"sex,age,income\n"
GOOD = f"{CANARY},7,3\n".encode()
FAULTS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "empty"),
    "only a mark": (b"\xef\xbb\xbf", "'sex' is missing"),
    "missing": (b"sex,income\n" + GOOD, "'age' is missing"),
    "no header": (GOOD, "'sex' is missing"),
    "repeated": (b"sex,age,age,income\n" + GOOD, "'age' appears more than once"),
    "open header": (b'sex,"age,income\n' + GOOD, "header"),
    "odd header": (b'sex,"a"ge,income\n' + GOOD, "header"),
    "long header": (b"sex,age,income," + GOOD[:-1] * 200_000, "header is longer"),
    "latin-1 header": (f"sex,âge,{CANARY}\n".encode("latin-1"), "UTF-8"),
    "utf-16": (f"sex,age,income\n{CANARY},7,3\n".encode("utf-16"), "UTF-8"),
    "utf-16, no mark": (f"sex,age,income\n{CANARY},7,3\n".encode("utf-16-le"), "UTF-8"),
    "latin-1": (HEADER + GOOD + f"{CANARY}é,1,1\n".encode("latin-1"), "UTF-8"),
    "latin-1 and short": (HEADER + GOOD + f"{CANARY}é,1\n".encode("latin-1"), "UTF-8"),
    "cut letter": (HEADER + GOOD + f"{CANARY}é".encode()[:-1], "UTF-8"),
    "short": (HEADER + GOOD + f"{CANARY},1\n".encode(), "2 fields where the header has 3"),
    "long": (HEADER + GOOD + f"{CANARY},1,1,1\n".encode(), "4 fields where the header has 3"),
    "open, last cell": (HEADER + GOOD + f'F,1,"{CANARY}\n'.encode() + GOOD, "never closed"),
    "open, first cell": (HEADER + GOOD + f'"{CANARY},1,2\n'.encode() + GOOD, "fields"),
    "large": (HEADER + GOOD + f"{CANARY},1,".encode() + b"1" * 9_000_000, "larger than 4 MiB"),
    "gzip cut": (gzip.compress(HEADER + GOOD * 9)[:-9], "gzip"),
    "gzip cut early": (gzip.compress(HEADER + GOOD * 9)[:15], "gzip"),
    "gzip checksum": (gzip.compress(HEADER + GOOD)[:-8] + bytes(8), "gzip"),
    "gzip tail": (gzip.compress(HEADER + GOOD) + CANARY.encode(), "gzip"),
    "gzip body": (gzip.compress(HEADER + GOOD)[:12] + b"\xff" * 50, "gzip"),
}


@pytest.mark.parametrize(("data", "problem"), FAULTS.values(), ids=FAULTS.keys())
def test_faults_are_named_without_any_value(
    data: bytes, problem: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(TableError, match=problem) as caught:
        read(data)
    assert_no_canary(caught.value)
    # Arrow must not print a warning either.
    assert capfd.readouterr() == ("", "")


def test_a_fault_is_the_same_however_far_into_the_file_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(csv_file, "PARSED_BYTES", 1000)
    for fault, problem in ((f"{CANARY},1\n", "2 fields"), (f'{CANARY},1,"2\n', "never closed")):
        with pytest.raises(TableError, match=problem) as caught:
            read(HEADER + GOOD * 500 + fault.encode() + GOOD)
        assert_no_canary(caught.value)


@pytest.mark.parametrize("error", [ConnectionResetError, MemoryError, pa.ArrowMemoryError])
def test_a_failing_system_is_not_a_fault_of_the_table(
    tmp_path: Path, error: type[Exception]
) -> None:
    class Broken(Upload):
        def read(self, size: int) -> bytes:
            if not self._data:
                raise error("gone")
            return super().read(size)

    with pytest.raises(error):
        list(read_csv(Broken(HEADER + GOOD, 5), PERSON))
    with pytest.raises(FileNotFoundError):
        list(read_csv(tmp_path / "none.csv", PERSON))


# Bounded memory


def endless(rows: int) -> Iterator[bytes]:
    yield HEADER
    for _ in range(rows // 1000):
        yield b"F,12,3.5\n" * 1000


class Lazy:
    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.pieces = pieces

    def read(self, size: int) -> bytes:
        return next(self.pieces, b"")


def test_memory_does_not_grow_with_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_file, "PARSED_BYTES", 2**16)
    monkeypatch.setattr(bytestream, "PIECE_BYTES", 2**14)
    rows, most, total = 0, 0, 4_000_000
    tracemalloc.start()
    try:
        for chunk in read_csv(Lazy(endless(total)), PERSON):
            rows += len(chunk["sex"])
            most = max(most, pa.total_allocated_bytes())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert rows == total
    # 36 MB of text; Arrow reads at most 32 blocks ahead.
    assert most + peak < 10e6


def test_chunks_have_at_most_so_many_rows() -> None:
    sizes = [len(chunk["sex"]) for chunk in read(HEADER + b"F,1,2\n" * 1000, chunk_rows=64)]
    assert sum(sizes) == 1000
    assert max(sizes) == 64
    with pytest.raises(ValueError, match="chunk_rows"):
        read(HEADER, chunk_rows=0)


def test_reading_may_stop_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_file, "PARSED_BYTES", 2**12)
    path = tmp_path / "table.csv"
    path.write_bytes(HEADER + b"F,1,2\n" * 200_000)
    for _ in range(5):
        chunks = read_csv(path, PERSON)
        assert isinstance(chunks, Generator)
        assert len(next(chunks)["sex"])
        chunks.close()


# Writing


def test_the_text_of_a_written_file() -> None:
    columns = [
        {"name": "a,b", "type": "categorical", "values": ["F", 'M"', "", " x"]},
        {"name": "n", "type": "integer", "lower": -2, "upper": 9},
        {"name": "r", "type": "real", "lower": 0, "upper": 1e22},
        {"name": "d", "type": "real", "lower": -1, "upper": 100, "decimals": 2},
        {"name": "id", "type": "identifier"},
    ]
    schema = Schema.model_validate({"columns": columns})
    chunk = {
        "a,b": np.array([0, 1, 2, 3, 4, 5], np.uint8),
        "n": np.array([0, 2, 11, 12, 3, 4], np.uint8),
        "r": np.array([0.1, 7.0, 1e22, np.nan, 1 / 3, 0.0]),
        "d": np.array([1.5, 99.999, -0.001, np.nan, 7.0, 0.125]),
        "id": np.zeros(6, "V16"),
    }
    assert written(schema, [chunk]).decode().split("\n") == [
        '"a,b",n,r,d',
        "F,-2,0.1,1.50",
        '"M""",0,7,100.00',
        '"",9,1e+22,0.00',
        '" x",,,',
        "other,1,0.3333333333333333,7.00",
        ",2,0,0.12",
        "",
    ]


def test_digits_never_leave_the_bounds() -> None:
    column = {"name": "x", "type": "real", "lower": 0.26, "upper": 0.44, "decimals": 1}
    schema = Schema.model_validate({"columns": [column]})
    chunk = {"x": np.array([0.26, 0.44])}
    assert written(schema, [chunk]) == b"x\n0.3\n0.4\n"


def test_writing_nothing_gives_a_header(tmp_path: Path) -> None:
    write_csv(tmp_path / "none.csv", PERSON, [])
    assert (tmp_path / "none.csv").read_bytes() == HEADER


def test_pieces_that_are_written_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_file, "_WRITTEN_CELLS", 9)
    data = HEADER + b"F,1,2.00\n" * 10
    assert written(PERSON, read(data)) == data
