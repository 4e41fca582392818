"""Public samples, read cell by cell."""

import csv
import gzip
import math
from collections.abc import Iterable, Iterator
from datetime import date
from os import PathLike
from pathlib import Path
from typing import Any

from scrim.datasets import checked_file
from scrim.errors import UnusableInput
from scrim.frames import Frame, kind_of, require
from scrim.profiles import Profile


def read_sample(sample: "str | PathLike[str] | Frame") -> list[Profile]:
    """Profile each column of a file or a data frame."""
    if not isinstance(sample, str | PathLike):
        return _of_frame(sample)
    path = checked_file(Path(sample))
    if path.suffix.lower() == ".parquet":
        pq: Any = require("pyarrow.parquet")
        try:
            return _of_frame(pq.read_table(path))
        except (OSError, ValueError):
            raise UnusableInput(f"{path} cannot be read as Parquet") from None
    try:
        return _of_csv(path)
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise UnusableInput(f"{path} cannot be read as CSV ({type(error).__name__})") from None


def _of_csv(path: Path) -> list[Profile]:
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as text:
        rows = csv.reader(text)
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
            profile.see(_text(value))
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


def _text(value: Any) -> str | None:
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
        case date():
            return value.isoformat()
        case _:
            return str(value)
