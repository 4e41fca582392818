"""Reading the rows of a file, a few at a time, against a declaration."""

import csv
import gzip
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, TextIO, cast

from scrim.datasets import TABLES_OF_LEVELS, checked_file
from scrim.errors import UnusableInput
from scrim.form.cells import reader_of
from scrim.form.report import ColumnFindings, FormReport, TableFindings
from scrim.frames import require
from scrim.samples import text_of
from scrim.spec.schema import Column, Schema
from scrim.spec.two_level import TwoLevelSchema
from scrim.values import AnySchema, parse_schema

PARQUET_ROWS = 10_000
MOST_CELL_CHARACTERS = 2**20
Row = Sequence[str | None]
FormPath = str | PathLike[str]


def check_form(files: "FormPath | Mapping[str, FormPath]", schema: AnySchema) -> FormReport:
    """Compare a file, or the files of groups and individuals by name, with a schema. Nothing is sent."""
    declared = parse_schema(schema)
    tables = files if isinstance(files, Mapping) else {"rows": files}
    needed = TABLES_OF_LEVELS if declared.is_linked else ("rows",)
    if set(tables) != set(needed):
        raise UnusableInput(
            "the schema declares groups and individuals; give both files, as groups and individuals"
            if declared.is_linked
            else "the schema declares one table; give one file"
        )
    if not isinstance(declared, TwoLevelSchema):
        return FormReport([_check_table("rows", Path(tables["rows"]), declared.columns)])
    return _check_both({name: Path(tables[name]) for name in needed}, declared)


def _check_both(paths: Mapping[str, Path], schema: TwoLevelSchema) -> FormReport:
    found = []
    keys: dict[str, Counter[str]] = {}
    for name in TABLES_OF_LEVELS:
        table: Schema = schema.table("groups" if name == "groups" else "individuals")
        keys[name] = Counter()
        key = schema.groups.key if name == "groups" else schema.individuals.group_key
        found.append(_check_table(name, paths[name], table.columns, key, keys[name]))
    _check_links(found, keys, schema)
    return FormReport(found)


def _check_links(
    found: Sequence[TableFindings], keys: Mapping[str, Counter[str]], schema: TwoLevelSchema
) -> None:
    """Say which groups do not fit together; the service accepts and changes them."""
    groups, individuals = keys["groups"], keys["individuals"]
    repeated = sum(1 for count in groups.values() if count > 1)
    lost = sum(1 for key in individuals if key not in groups)
    large = sum(1 for count in individuals.values() if count > schema.max_group_size)
    for table, count, text in (
        (found[0], repeated, "keys of groups appear in more than one row"),
        (found[1], lost, "groups of individuals have no row in the table of groups"),
        (found[1], large, f"groups have more than {schema.max_group_size} individuals"),
    ):
        if count:
            table.remarks.append(f"{count:,} {text}")


def _check_table(
    name: str,
    path: Path,
    columns: Sequence[Column],
    key: str | None = None,
    keys: Counter[str] | None = None,
) -> TableFindings:
    found = TableFindings(name)
    with _rows_of(path, found) as (header, rows):
        places = _places(header, columns, found)
        if found.faults:
            return found
        found.columns = [ColumnFindings(column) for column in columns]
        judged = [
            (place, reader_of(each.column), each)
            for place, each in zip(places, found.columns, strict=True)
        ]
        key_place = None if key is None else places[[each.name for each in columns].index(key)]
        for row in rows:
            if len(row) != len(header):
                found.faults.append(
                    f"row {found.rows + 1:,} has {len(row)} fields where the header has {len(header)}"
                )
                break
            found.rows += 1
            for place, read, each in judged:
                each.add(read(row[place]), row[place])
            if keys is not None and key_place is not None:
                keys[(row[key_place] or "").strip()] += 1
    return found


def _places(header: Sequence[str], columns: Sequence[Column], found: TableFindings) -> list[int]:
    """The position of each declared column."""
    times = Counter(header)
    declared = {column.name for column in columns}
    found.ignored = [name for name in times if name not in declared]
    for column in columns:
        if times[column.name] == 0:
            like = next((n for n in times if n.strip().lower() == column.name.lower()), None)
            hint = f"; the file has {like!r}" if like is not None else ""
            found.faults.append(f"column {column.name!r} is missing in the file{hint}")
        elif times[column.name] > 1:
            found.faults.append(f"column {column.name!r} appears {times[column.name]} times")
    return [] if found.faults else [header.index(column.name) for column in columns]


@contextmanager
def _rows_of(path: Path, found: TableFindings) -> Iterator[tuple[list[str], Iterator[Row]]]:
    """The header and the rows of a file. What cannot be read is a fault of the table."""
    if checked_file(path).suffix.lower() == ".parquet":
        with _parquet_rows(path) as content:
            yield content
        return
    csv.field_size_limit(MOST_CELL_CHARACTERS)
    with _faults_of(found), _opened(path) as text:
        lines = csv.reader(text, strict=True)
        header: list[str] = []
        with _faults_of(found):
            header = next(lines, [])
        if not header and not found.faults:
            found.faults.append("the file is empty; it needs a header with the column names")
        # The service ignores empty lines, except in a file of one column.
        yield header, (row or [""] for row in lines if row or len(header) == 1)


def _opened(path: Path) -> TextIO:
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    return cast(TextIO, opened(path, "rt", encoding="utf-8-sig", newline=""))


@contextmanager
def _faults_of(found: TableFindings) -> Iterator[None]:
    """Note what cannot be read as a fault of the table."""
    try:
        yield
    except (OSError, EOFError) as error:
        found.faults.append(f"the file cannot be read ({type(error).__name__})")
    except UnicodeDecodeError:
        found.faults.append("the file is not UTF-8; save it as UTF-8")
    except csv.Error as error:
        found.faults.append(f"the file cannot be read as CSV near row {found.rows + 1:,}: {error}")


@contextmanager
def _parquet_rows(path: Path) -> Iterator[tuple[list[str], Iterator[Row]]]:
    pq: Any = require("pyarrow.parquet")
    try:
        file = pq.ParquetFile(path)
    except (OSError, ValueError):
        raise UnusableInput(f"{path} cannot be read as Parquet") from None
    with file:
        yield list(file.schema_arrow.names), _rows_in(file)


def _rows_in(file: Any) -> Iterator[Row]:
    for batch in file.iter_batches(batch_size=PARQUET_ROWS):
        columns = [[text_of(cell) for cell in column.to_pylist()] for column in batch.columns]
        yield from zip(*columns, strict=True)
