"""The files of a release: written piece by piece, and stored under the hash of their content.

In CSV files texts and column names are escaped for spreadsheets (scrim/spec/csv_text.py). Parquet
files hold every text as it is.
"""

import csv
import io
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from scrim.spec.csv_text import FORMULA_STARTS, escaped
from scrim.spec.schema import Schema
from scrim.spec.two_level import LinkedSchema
from service.data.media_types import CSV, PARQUET
from service.data.storage import Storage, StoredContent
from synth.models.released import ANSWER_COLUMNS, AnswerTable
from synth.run import FinishedRelease
from synth.table import Chunk, write_csv, write_parquet
from synth.table.linking import unlink
from worker.crash import crash_at

OCTETS = "application/octet-stream"
JSON = "application/json"
HTML = "text/html; charset=utf-8"
CERTIFICATE = "certificate.json"
MODEL = "model"
REPORT = "report.html"

CSV_ESCAPING = {
    "prefix": "'",
    "before": list(FORMULA_STARTS),
    "where": "texts and column names of CSV files that begin so, apart from plain numbers",
    "undo": "drop the first of the apostrophes that stand before one of these characters",
}
"""How a certificate describes the escaping of texts in CSV files."""

File = tuple[Iterable[bytes], str]
"""The content of a file in pieces, and its media type."""
_ROWS_AT_ONCE = 2**16
"""Rows that are written at a time."""
_PIECE_BYTES = 2**20
"""Size of the pieces in which files are stored."""


@dataclass(frozen=True)
class Written:
    """An artifact in the storage."""

    stored: StoredContent
    media_type: str


def write_artifacts(
    storage: Storage, release: FinishedRelease, formats: Collection[str], *, folder: Path
) -> dict[str, Written]:
    """Store rows, answers and model, then each further set of rows; returns them by name."""
    files: dict[str, File] = {MODEL: ([release.model.to_bytes()], OCTETS)}
    schema = release.model.schema
    if release.rows is not None:
        files |= _rows_as_files(_tables(schema, release.rows), formats, folder)
    if release.answers is not None:
        files |= _answers_as_files(release.answers, formats, folder)
    written = _stored(storage, files)
    for number, rows in enumerate(release.redraws or (), 1):
        tables = _tables(schema, rows, f"synthetic_{number}")
        written |= _stored(storage, _rows_as_files(tables, formats, folder))
        crash_at("after-draw")
    return written


def _stored(storage: Storage, files: Mapping[str, File]) -> dict[str, Written]:
    return {name: store(storage, pieces, kind) for name, (pieces, kind) in files.items()}


def _rows_as_files(
    tables: Mapping[str, tuple[Schema, Chunk]], formats: Collection[str], folder: Path
) -> dict[str, File]:
    """The files of tables of rows, written when they are read."""
    return {
        f"{name}.{format_}": (rows_as_csv(schema, rows), CSV)
        if format_ == "csv"
        else (_rows_as_parquet(schema, rows, folder), PARQUET)
        for format_ in formats
        for name, (schema, rows) in tables.items()
    }


def _answers_as_files(
    answers: AnswerTable, formats: Collection[str], folder: Path
) -> dict[str, File]:
    """The files of the answers, written when they are read."""
    return {
        f"answers.{format_}": (answers_as_csv(answers), CSV)
        if format_ == "csv"
        else (_answers_as_parquet(answers, folder), PARQUET)
        for format_ in formats
    }


def _tables(
    schema: Schema, rows: Chunk, name: str = "synthetic"
) -> dict[str, tuple[Schema, Chunk]]:
    """Released rows by file name; two tables if groups and individuals were linked."""
    if isinstance(schema, LinkedSchema):
        return {f"{name}_{level}": table for level, table in unlink(rows, schema).items()}
    return {name: (schema, rows)}


def as_one_table(schema: Schema, rows: Chunk) -> tuple[Schema, Chunk]:
    """Released rows as one table; linked rows have the number of their group."""
    if schema.key is None:
        return schema, rows
    declared, individuals = _tables(schema, rows)["synthetic_individuals"]
    counted = declared.columns[0]
    columns = [counted.model_copy(update={"name": schema.key}), *schema.attributes]
    released = {column.name: rows[column.name] for column in schema.attributes}
    return Schema(columns=columns), {schema.key: individuals[counted.name], **released}


def store(storage: Storage, pieces: Iterable[bytes], media_type: str) -> Written:
    """Store one artifact under the hash of its content."""
    return Written(storage.write_content("artifacts", pieces), media_type)


def rows_as_csv(schema: Schema, rows: Chunk) -> Iterator[bytes]:
    """The rows as a CSV file that is safe to open in a spreadsheet."""
    for first in range(0, max(1, _length(rows)), _ROWS_AT_ONCE):
        part = {name: values[first : first + _ROWS_AT_ONCE] for name, values in rows.items()}
        buffer = io.BytesIO()
        write_csv(buffer, schema, [part], escape=escaped)
        content = buffer.getvalue()
        # Names have no line breaks, so the header is the first line.
        yield content if first == 0 else content[content.index(b"\n") + 1 :]


def answers_as_csv(answers: AnswerTable) -> Iterator[bytes]:
    """The answers as a CSV file that is safe to open in a spreadsheet."""
    yield f"{','.join(ANSWER_COLUMNS)}\n".encode()
    for first in range(0, len(answers.items), _ROWS_AT_ONCE):
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows(
            (escaped(item), escaped(query), *others)
            for item, query, *others in answers.lines(slice(first, first + _ROWS_AT_ONCE))
        )
        yield buffer.getvalue().encode()


def _rows_as_parquet(schema: Schema, rows: Chunk, folder: Path) -> Iterator[bytes]:
    parts = (
        {name: values[first : first + _ROWS_AT_ONCE] for name, values in rows.items()}
        for first in range(0, _length(rows), _ROWS_AT_ONCE)
    )
    return _by_way_of_a_file(lambda file: write_parquet(file, schema, parts), folder)


def _answers_as_parquet(answers: AnswerTable, folder: Path) -> Iterator[bytes]:
    numbers = (
        answers.fractions,
        answers.counts,
        answers.standard_errors,
        answers.count_standard_errors,
    )
    columns: list[pa.Array] = [
        *(pa.array(texts, pa.string()) for texts in (answers.items, answers.queries)),
        *(
            pa.nulls(len(answers.items), pa.float64())
            if each is None
            else pa.array(each, pa.float64())
            for each in numbers
        ),
        pa.array(answers.bases, pa.string()),
    ]
    table = pa.table(columns, names=ANSWER_COLUMNS)
    return _by_way_of_a_file(lambda file: pq.write_table(table, file), folder)


def _by_way_of_a_file(write: Callable[[BinaryIO], None], folder: Path) -> Iterator[bytes]:
    """Yield what `write` writes, through an unnamed file, because it may be larger than memory."""
    with tempfile.TemporaryFile(dir=folder) as file:
        write(cast(BinaryIO, file))
        file.seek(0)
        while piece := file.read(_PIECE_BYTES):
            yield piece


def _length(rows: Chunk) -> int:
    return len(next(iter(rows.values())))
