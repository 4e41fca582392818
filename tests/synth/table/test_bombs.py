"""Small files that unpack to large ones: refused with a reason, or read in little memory."""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scrim.spec.schema import Schema
from synth.table import TableError, bytestream, parquet_file, read_csv, read_parquet
from synth.table.parquet_pages import pages_of

WORKER_BYTES = 1.5e9
SCHEMA = {"columns": [{"name": "a", "type": "categorical", "values": ["x"]}]}
READER = """
import json, os, resource, sys
from scrim.spec.schema import Schema
from synth.table import TableError, read_csv, read_parquet

resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, 8 * 2**30))
schema = Schema.model_validate_json(sys.argv[1])
found = {}
for path in sys.argv[2:]:
    read = read_parquet if path.endswith("parquet") else read_csv
    try:
        outcome = sum(len(chunk["a"]) for chunk in read(path, schema))
    except TableError as error:
        outcome = error.problem
    found[os.path.basename(path)] = outcome
# Not ru_maxrss, which also counts the process that started this one.
status = open("/proc/self/status").read()
peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024
sys.stdout.write(json.dumps([found, peak]))
sys.stdout.flush()
os._exit(0)  # Arrow's threads may still read ahead
"""


def equal(rows: int, text: str) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text]))


def long_texts(count: int, size: int) -> Any:
    return pa.array([f"{position:0{size}}" for position in range(count)])


def long_footer() -> bytes:
    """The end of a file that claims a footer of 9 MiB, which Arrow would take a gigabyte to read."""
    footer = bytes(9 * 2**20)
    return b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def bombs() -> Iterator[tuple[str, Any, dict[str, Any], int | str]]:
    """Parquet files of one column: name, cells, options of the writer, and rows or a reason."""
    plain: dict[str, Any] = {"use_dictionary": False, "write_batch_size": 1}
    long_cell = "a cell of more than 1 MiB"
    yield "dictionary", equal(3000, "x" * 3_200_000), {}, long_cell
    yield "no types", equal(3000, "x" * 3_200_000), {"store_schema": False}, long_cell
    yield "cell", pa.array(["x" * 40_000_000]), plain, "more than 32 MiB"
    yield "cells", pa.array(["x" * 20_000_000] * 5), plain, long_cell
    large = {**plain, "data_page_size": 31 * 2**20}
    yield "texts", long_texts(100, 1_000_000), large, 100
    yield "repeated", equal(500, "x" * 1_000_000), {"store_schema": False}, 500
    mixed = pa.concat_arrays([pa.array(["x" * 1_000_000] * 100), long_texts(9, 500_000)])
    yield "then plain", mixed, {}, 109
    categories = long_texts(100, 1_000_000).dictionary_encode()
    yield "categories", categories, plain, "row group has more than 64 MiB"
    yield "equal", pa.array(np.zeros(5_000_000, np.int8)), {}, 5_000_000
    for encoding in ("DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"):
        options = {"use_dictionary": False, "column_encoding": encoding}
        yield encoding, pa.array(["x" * 9000] * 9), options, f"encoding {encoding},"


BYTES: dict[str, tuple[Callable[[], bytes], int | str]] = {
    "footer.parquet": (long_footer, "footer is larger than 8 MiB"),
    "rows.csv.gz": (
        lambda: gzip.compress(b"a\n" + b"xxxxxxxxx\n" * 7_000_000),
        "more than 250 times its size",
    ),
    "line.csv": (lambda: b"a\n" + b"x" * 20_000_000, "larger than 4 MiB"),
    "quote.csv": (lambda: b'a\n"' + b"x\n" * 9_000_000, "never closed"),
    "header.csv": (lambda: b"a" + b"," * 2**21 + b"\n", "header is longer"),
    "columns.csv": (lambda: b"a" + b"," * 10**6 + b"\n" + b"," * 10**6, 1),
    "cell.csv": (lambda: b"a\n" + b"x" * 2**21 + b"\n", "a cell of more than 1 MiB"),
}


def write_bombs(folder: Path) -> dict[str, int | str]:
    """Write all of them; returns the rows, or a part of the reason, by name of the file."""
    expected: dict[str, int | str] = {}
    for name, cells, options, outcome in bombs():
        expected[f"{name}.parquet"] = outcome
        path = folder / f"{name}.parquet"
        pq.write_table(pa.table({"a": cells}), path, compression="zstd", **options)
    for name, (content, outcome) in BYTES.items():
        expected[name] = outcome
        (folder / name).write_bytes(content())
    return expected


def test_bombs_take_little_memory(tmp_path: Path) -> None:
    expected = write_bombs(tmp_path)
    files = [str(tmp_path / name) for name in expected]
    command = [sys.executable, "-c", READER, json.dumps(SCHEMA), *files]
    answer = subprocess.run(command, capture_output=True, check=True)
    found, peak = json.loads(answer.stdout)
    for name, outcome in expected.items():
        if isinstance(outcome, str):
            assert outcome in str(found[name]), name
        else:
            assert found[name] == outcome, name
    assert peak < WORKER_BYTES


def declared() -> Schema:
    return Schema.model_validate(SCHEMA)


def test_what_a_table_unpacks_to_is_bounded(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": ["x"] * 1000}), tmp_path / "t.parquet")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a\n" + b"x\n" * 500))
    for read, name in ((read_parquet, "t.parquet"), (read_csv, "t.csv.gz")):
        assert list(read(tmp_path / name, declared(), max_bytes=1100))
        with pytest.raises(TableError, match="unpacks to more than 900 bytes"):
            list(read(tmp_path / name, declared(), max_bytes=900))


def test_a_table_compresses_as_much_as_tables_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bytestream, "_ALWAYS_UNPACKED", 1000)
    codes = np.random.default_rng(0).integers(0, 2, 100_000)
    rows = "".join(f"{'xyz' * 20}{code}\n" for code in codes).encode()
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a\n" + rows))
    assert sum(len(c["a"]) for c in read_csv(tmp_path / "t.csv.gz", declared())) == 100_000


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("use_dictionary", [True, False])
def test_every_page_is_seen(
    tmp_path: Path, compression: str, version: str, use_dictionary: bool
) -> None:
    cells = pa.array([None if i % 7 == 0 else f"text {i % 300}" for i in range(5000)])
    path = tmp_path / "t.parquet"
    pq.write_table(
        pa.table({"a": cells, "b": range(5000)}),
        path,
        compression=compression,
        data_page_version=version,
        use_dictionary=use_dictionary,
        data_page_size=1000,
        write_batch_size=100,
        row_group_size=2000,
    )
    metadata = pq.read_metadata(path)
    with path.open("rb") as file:
        for number in range(metadata.num_row_groups):
            for column in range(metadata.num_columns):
                chunk = metadata.row_group(number).column(column)
                pages = list(pages_of(file, chunk))
                cells_in = sum(page.values for page in pages if not page.is_dictionary)
                assert cells_in == metadata.row_group(number).num_rows
                assert sum(page.is_dictionary for page in pages) == use_dictionary
                assert sum(page.size for page in pages) <= chunk.total_uncompressed_size
    assert sum(len(chunk["a"]) for chunk in read_parquet(path, declared())) == 5000


def test_fewer_rows_are_decoded_at_a_time_where_text_is_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_file, "BATCH_BYTES", 20_000)
    for name, cells in {
        "plain": long_texts(400, 1000),
        "dictionary": equal(400, "x" * 1000),
    }.items():
        path = tmp_path / f"{name}.parquet"
        pq.write_table(
            pa.table({"a": cells}),
            path,
            use_dictionary=name == "dictionary",
            data_page_size=1000,
            write_batch_size=1,
        )
        sizes = [len(chunk["a"]) for chunk in read_parquet(path, declared(), chunk_rows=400)]
        assert sum(sizes) == 400
        assert 10 <= max(sizes) <= 20


def test_columns_that_are_not_declared_may_hold_anything(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": ["x"], "b": ["x" * 50_000_000], "c": [[[1]]]}), path)
    assert [len(chunk["a"]) for chunk in read_parquet(path, declared())] == [1]
