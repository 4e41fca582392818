"""Typed tables: from files to encoded chunks of rows, and from codes back to declared values.

Bytes (`bytestream`) become cells (`csv_file`, `parquet_file`, `cells`), cells become typed columns
(`encoding`), columns become chunks (`chunk`), and chunks make a `Table`. The errors are drawn in
`chunk`.
"""

from synth.table.alignment import align
from synth.table.chunk import Chunk, TableError, chunk_from_bytes, chunk_to_bytes
from synth.table.csv_file import read_csv, write_csv
from synth.table.encoding import draw_values, store_numbers, with_blank_identifiers
from synth.table.parquet_file import read_parquet, write_parquet
from synth.table.table import Table, limit_rows

__all__ = [
    "Chunk",
    "Table",
    "TableError",
    "align",
    "chunk_from_bytes",
    "chunk_to_bytes",
    "draw_values",
    "limit_rows",
    "read_csv",
    "read_parquet",
    "store_numbers",
    "with_blank_identifiers",
    "write_csv",
    "write_parquet",
]
