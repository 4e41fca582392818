"""Data frames in and out. pandas, polars and pyarrow are imported only when they are used."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from scrim.errors import UnusableInput
from scrim.spec.columns import CategoricalColumn, IntegerColumn
from scrim.spec.csv_text import ESCAPED, unescaped
from scrim.spec.schema import Attribute, Schema
from scrim.spec.two_level import TwoLevelSchema

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

# In quotes, because the libraries are optional.
Frame: TypeAlias = "pd.DataFrame | pl.DataFrame | pl.LazyFrame | pa.Table"
"""A table in memory."""

FrameKind = Literal["pandas.DataFrame", "polars.DataFrame", "polars.LazyFrame", "pyarrow.Table"]

SCHEMA_KEY = "scrim.schema"
"""The metadata key of the schema in a released Parquet file."""


@dataclass(frozen=True)
class ReleasedTable:
    """A downloaded file of synthetic rows; `schema` is set if the file does not contain it."""

    path: Path
    schema: Schema | TwoLevelSchema | None


def kind_of(data: Any) -> FrameKind:
    """The library of a data frame, found without importing it."""
    known = get_args(FrameKind)
    for base in type(data).__mro__:
        if (kind := f"{base.__module__.partition('.')[0]}.{base.__name__}") in known:
            return cast(FrameKind, kind)
    raise UnusableInput("give a file, or a data frame of pandas, polars or pyarrow")


def write_frame(frame: Frame, path: Path) -> None:
    """Write a data frame as Parquet."""
    table: Any = frame
    kind = kind_of(frame)
    if kind == "pandas.DataFrame":
        require("pyarrow")
    try:
        match kind:
            case "pandas.DataFrame":
                table.to_parquet(path, index=False)
            case "polars.DataFrame":
                table.write_parquet(path)
            case "polars.LazyFrame":
                table.sink_parquet(path)
            case "pyarrow.Table":
                require("pyarrow.parquet").write_table(table, path)
        return
    except Exception:
        # Not chained: the libraries' messages quote cells.
        pass
    raise UnusableInput(
        f"this {kind} cannot be written as Parquet; give every column a name and one type: text, "
        "whole numbers, numbers, booleans or dates"
    )


def read_pandas(table: ReleasedTable) -> "pd.DataFrame":
    """Read categories as Categorical, whole numbers as Int64, others as Float64, missing as NA."""
    pandas: Any = require("pandas")
    if table.schema is None:
        pq: Any = require("pyarrow.parquet")
        attributes = _stored(pq.read_schema(table.path).metadata[SCHEMA_KEY.encode()])
        frame = pandas.read_parquet(table.path, engine="pyarrow")
    else:
        attributes = _attributes(table.schema)
        frame = pandas.read_csv(table.path, dtype=str, keep_default_na=False, na_values=[""])
        frame.columns = [unescaped(name) for name in frame.columns]
    for name in frame.columns:
        column, values = attributes.get(name), frame[name]
        if isinstance(column, CategoricalColumn):
            texts = values.astype("string")
            if table.schema is not None:
                texts = texts.str.replace(ESCAPED, r"\1", regex=True)
            frame[name] = pandas.Categorical(texts, categories=list(column.labels))
        else:
            frame[name] = pandas.to_numeric(values).astype(
                "Int64" if _is_whole(column) else "Float64"
            )
    return frame


def read_polars(table: ReleasedTable) -> "pl.DataFrame":
    """Read categories as Enum, whole numbers as Int64, others as Float64, missing as null."""
    polars: Any = require("polars")
    if table.schema is None:
        attributes = _stored(polars.read_parquet_metadata(table.path)[SCHEMA_KEY])
        frame = polars.read_parquet(table.path)
    else:
        attributes = _attributes(table.schema)
        frame = polars.read_csv(table.path, infer_schema=False)
        frame.columns = [unescaped(name) for name in frame.columns]
    typed = []
    for name in frame.columns:
        column, values = attributes.get(name), polars.col(name)
        if isinstance(column, CategoricalColumn):
            texts = values.cast(polars.String)
            if table.schema is not None:
                texts = texts.str.replace(ESCAPED, "$1")
            typed.append(texts.cast(polars.Enum(list(column.labels))))
        else:
            typed.append(values.cast(polars.Int64 if _is_whole(column) else polars.Float64))
    result: pl.DataFrame = frame.with_columns(typed)
    return result


def require(library: str) -> ModuleType:
    """Import an optional library, or raise an error that says what to install."""
    try:
        return import_module(library)
    except ImportError:
        missing = library.partition(".")[0]
        raise UnusableInput(
            f"this needs {missing}, which is not installed: pip install 'scrim[frames]', or "
            f"{missing} alone"
        ) from None


def _is_whole(column: Attribute | None) -> bool:
    """Whether the values are whole numbers; an undeclared column is the generated key of a group."""
    return column is None or isinstance(column, IntegerColumn)


def _stored(schema: str | bytes) -> dict[str, Attribute]:
    return _attributes(Schema.model_validate_json(schema))


def _attributes(schema: Schema | TwoLevelSchema) -> dict[str, Attribute]:
    return {column.name: column for column in schema.linked.attributes}
