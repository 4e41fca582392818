"""Public samples, read cell by cell."""

import csv
import gzip
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time
from os import PathLike
from pathlib import Path
from typing import Any

from scrim.datasets import checked_file
from scrim.errors import UnusableInput
from scrim.frames import Frame, kind_of, require
from scrim.profiles import Profile


@dataclass(frozen=True)
class Sample:
    """A public table, with a profile of each column."""

    source: "str | PathLike[str] | Frame"
    profiles: list[Profile]

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [profile.name for profile in self.profiles]

    def most_rows_with_one(self, name: str) -> int:
        """The largest number of rows with the same value in a column; empty cells are left out."""
        source = self.source
        table = _table_of(Path(source)) if isinstance(source, str | PathLike) else source
        cells: Iterable[str | None]
        if isinstance(table, Path):
            with _csv_rows(table) as rows:
                place = next(rows).index(name)
                cells = [row[place] if place < len(row) else None for row in rows]
        else:
            cells = [text_of(value) for value in dict(_columns(table))[name]]
        counts = Counter(cell.strip() for cell in cells if cell and cell.strip())
        return max(counts.values(), default=1)


def read_sample(sample: "str | PathLike[str] | Frame") -> Sample:
    """Profile each column of a file or a data frame."""
    if not isinstance(sample, str | PathLike):
        return Sample(sample, _of_frame(sample))
    path = Path(sample)
    table = _table_of(path)
    if not isinstance(table, Path):
        return Sample(sample, _of_frame(table))
    with _csv_rows(path) as rows:
        return Sample(sample, _of_csv(rows, path))


def _table_of(path: Path) -> Any:
    """The path of a CSV file, or the content of a Parquet file."""
    if checked_file(path).suffix.lower() != ".parquet":
        return path
    pq: Any = require("pyarrow.parquet")
    try:
        return pq.read_table(path)
    except (OSError, ValueError):
        raise UnusableInput(f"{path} cannot be read as Parquet") from None


@contextmanager
def _csv_rows(path: Path) -> Iterator[Iterator[list[str]]]:
    """The rows of a CSV file, the header first."""
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as text:
            yield csv.reader(text)
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise UnusableInput(f"{path} cannot be read as CSV ({type(error).__name__})") from None


def _of_csv(rows: Iterator[list[str]], path: Path) -> list[Profile]:
    profiles = [Profile(name) for name in next(rows, [])]
    if len({profile.name for profile in profiles}) < len(profiles):
        raise UnusableInput(f"{path} has two columns of the same name")
    for row in rows:
        for profile, cell in zip(profiles, row, strict=False):
            profile.see(cell)
    return profiles


def _of_frame(frame: Any) -> list[Profile]:
    profiles = []
    for name, values in _columns(frame):
        profile = Profile(str(name))
        for value in values:
            profile.see(text_of(value))
        profiles.append(profile)
    return profiles


def _columns(frame: Any) -> Iterator[tuple[str, Iterable[Any]]]:
    match kind_of(frame):
        case "pandas.DataFrame":
            known = frame.astype(object).where(frame.notna(), None)
            yield from ((name, known[name].tolist()) for name in known.columns)
        case "polars.DataFrame" | "polars.LazyFrame":
            whole = frame.lazy().collect()
            yield from ((name, whole[name].to_list()) for name in whole.columns)
        case "pyarrow.Table":
            yield from ((name, frame[name].to_pylist()) for name in frame.column_names)


def text_of(value: Any) -> str | None:
    """A cell as the service reads it from Parquet: whole floats as whole numbers, true, 2020-01-31."""
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case float() if math.isnan(value):
            return None
        case float() if value.is_integer():
            return str(int(value))
        case datetime() if value.time() == time.min:
            return value.date().isoformat()
        case date():
            return value.isoformat()
        case _:
            return str(value)
