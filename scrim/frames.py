"""Data frames in and out. pandas, polars and pyarrow are imported only when they are used."""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from scrim.errors import UnusableInput
from scrim.spec.columns import (
    BooleanColumn,
    DateColumn,
    DatetimeColumn,
    IntegerColumn,
    LabelledColumn,
    OrdinalColumn,
)
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
    """Read categories as Categorical, whole numbers as Int64, others as Float64, missing as NA, dates as
    datetime64. Several kinds of missing values have a column beside theirs, `NAME.missing`."""
    pandas: Any = require("pandas")
    if table.schema is None:
        pq: Any = require("pyarrow.parquet")
        attributes = _stored(pq.read_schema(table.path).metadata[SCHEMA_KEY.encode()])
        frame = pandas.read_parquet(table.path, engine="pyarrow")
        return _typed_pandas(frame, attributes, pandas)
    attributes = _attributes(table.schema)
    frame = pandas.read_csv(table.path, dtype=str, keep_default_na=False, na_values=[""])
    parts: dict[str, Any] = {}
    for header in frame.columns:
        name, texts = unescaped(header), frame[header].str.replace(ESCAPED, r"\1", regex=True)
        column = attributes.get(name)
        if column is not None:
            spelled = dict(zip(column.spellings, column.kinds, strict=True))
            if len(spelled) > 1:
                kinds = (
                    texts.map(spelled)
                    .fillna(spelled.get(""))
                    .where(texts.isna() | texts.isin(list(spelled)))
                )
                parts |= {name: None, column.name_of_kinds: kinds}
            texts = texts.where(~texts.isin(list(spelled)))
            texts = texts.map(_meanings(column, texts.dropna().unique()), na_action="ignore")
        parts[name] = texts
    return _typed_pandas(pandas.DataFrame(parts), attributes, pandas)


def _typed_pandas(frame: Any, attributes: dict[str, Attribute], pandas: Any) -> "pd.DataFrame":
    of_kinds = {each.name_of_kinds: each for each in attributes.values() if len(each.kinds) > 1}
    for name in frame.columns:
        column, values = attributes.get(name), frame[name]
        if name in of_kinds:
            frame[name] = pandas.Categorical(values, categories=list(of_kinds[name].kinds))
        elif isinstance(column, BooleanColumn):
            frame[name] = values.astype("boolean")
        elif isinstance(column, LabelledColumn | OrdinalColumn):
            frame[name] = pandas.Categorical(
                values.astype("string"),
                categories=list(column.texts),
                ordered=isinstance(column, OrdinalColumn),
            )
        elif isinstance(column, DateColumn | DatetimeColumn):
            frame[name] = pandas.to_datetime(values).astype("datetime64[us]")
        else:
            whole = "Int64" if _is_whole(column) else "Float64"
            frame[name] = pandas.to_numeric(values).astype(whole)
    result: pd.DataFrame = frame
    return result


def read_polars(table: ReleasedTable) -> "pl.DataFrame":
    """Read categories as Enum, whole numbers as Int64, others as Float64, missing as null, dates as Date
    and Datetime. Several kinds of missing values have a column beside theirs, `NAME.missing`."""
    polars: Any = require("polars")
    if table.schema is None:
        attributes = _stored(polars.read_parquet_metadata(table.path)[SCHEMA_KEY])
        return _typed_polars(polars.read_parquet(table.path), attributes, polars)
    attributes = _attributes(table.schema)
    frame = polars.read_csv(table.path, infer_schema=False)
    parts = []
    for header in frame.columns:
        name, texts = unescaped(header), frame[header].str.replace(ESCAPED, "$1")
        column = attributes.get(name)
        kinds = []
        if column is not None:
            spelled = dict(zip(column.spellings, column.kinds, strict=True))
            cells = texts.fill_null("")
            if len(spelled) > 1:
                kinds = [cells.replace_strict(spelled, default=None).alias(column.name_of_kinds)]
            texts = texts.set(cells.is_in(list(spelled)), None)
            meanings = _meanings(column, texts.drop_nulls().unique().to_list())
            texts = _replaced(texts, meanings, column, polars)
        parts += [texts.alias(name), *kinds]
    return _typed_polars(polars.DataFrame(parts), attributes, polars)


def _replaced(texts: Any, meanings: dict[str, Any], column: Attribute, polars: Any) -> Any:
    if isinstance(column, BooleanColumn):
        return texts.replace_strict(meanings, default=None, return_dtype=polars.Boolean)
    if isinstance(column, DateColumn | DatetimeColumn):
        kind = polars.Datetime("us")
        return texts.replace_strict(meanings, default=None, return_dtype=kind)
    return texts


def _typed_polars(frame: Any, attributes: dict[str, Attribute], polars: Any) -> "pl.DataFrame":
    of_kinds = {each.name_of_kinds: each for each in attributes.values() if len(each.kinds) > 1}
    typed = []
    for name in frame.columns:
        column, values = attributes.get(name), polars.col(name)
        if name in of_kinds:
            kinds = polars.Enum(list(of_kinds[name].kinds))
            typed.append(values.cast(polars.String).cast(kinds))
        elif isinstance(column, BooleanColumn):
            typed.append(values.cast(polars.Boolean))
        elif isinstance(column, LabelledColumn | OrdinalColumn):
            typed.append(values.cast(polars.String).cast(polars.Enum(list(column.texts))))
        elif isinstance(column, DateColumn):
            typed.append(values.cast(polars.Date))
        elif isinstance(column, DatetimeColumn):
            typed.append(values.cast(polars.Datetime("us")))
        else:
            typed.append(values.cast(polars.Int64 if _is_whole(column) else polars.Float64))
    result: pl.DataFrame = frame.with_columns(typed)
    return result


def _meanings(column: Attribute, texts: Iterable[str]) -> dict[str, Any]:
    """What the texts of a released column mean: booleans and times as values, others as themselves."""
    if isinstance(column, BooleanColumn):
        return {column.true[0]: True, column.false[0]: False}
    if isinstance(column, DateColumn | DatetimeColumn):
        return {text: column.time_format.read(text) for text in texts}
    return {text: text for text in texts}


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
