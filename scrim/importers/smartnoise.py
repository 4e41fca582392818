"""SmartNoise SQL metadata, and the variant of it that Lomas used.

SmartNoise: collection -> schema -> table -> options and columns, side by side. Lomas: one table, its
options and, under `columns`, its columns, which may also list their categories.
"""

from datetime import date
from typing import Any

from scrim.importers.declaration import (
    Booleans,
    Fields,
    Imported,
    declare,
    protect_people,
    read_fields,
    read_flag,
    read_labels,
    read_number,
    read_whole,
    refuse_unknown,
)
from scrim.spec.errors import SpecError
from scrim.spec.population import Protection

# Options of queries, or bounds that are enforced anyway: none of them changes a schema.
_IGNORED_OPTIONS = {
    "rows",
    "rows_exact",
    "sample_max_ids",
    "censor_dims",
    "clamp_counts",
    "clamp_columns",
    "use_dpsu",
}
_OPTIONS = {"max_ids", "row_privacy", *_IGNORED_OPTIONS}

_IGNORED_FIELDS = {
    "bounded",
    "sensitivity",
    "precision",
    "max_partition_length",
    "max_influenced_partitions",
    "max_partition_contributions",
}
_FIELDS = {
    "name",
    "type",
    "private_id",
    "lower",
    "upper",
    "categories",
    "cardinality",
    "nullable",
    "nullable_proportion",
    "missing_value",
    *_IGNORED_FIELDS,
}

_QUOTES = {'"': '"', "`": "`", "[": "]"}


def from_smartnoise(
    metadata: Fields, *, table: str | None = None, booleans: Booleans = ("false", "true")
) -> Imported:
    """Convert the metadata of one table to a schema and its protection.

    `table` picks one of several tables; `booleans` is how the file spells false and true.
    """
    options, columns = _pick_table(read_fields(metadata, "the metadata"), table)
    declared = {
        _unquoted(name): read_fields(fields, f"column {name!r}") for name, fields in columns.items()
    }
    if len(declared) < len(columns):
        raise SpecError("two columns have the same name apart from quotes; rename one")
    converted = [_column(name, fields, booleans) for name, fields in declared.items()]
    return Imported(
        schema=declare([column for column in converted if column is not None]),
        protection=_protection(options, declared),
    )


def _pick_table(metadata: Fields, wanted: str | None) -> tuple[Fields, Fields]:
    """The options and the columns of the chosen table."""
    if "columns" in metadata:
        options = {name: value for name, value in metadata.items() if name != "columns"}
        refuse_unknown(options, _OPTIONS, "the table")
        return options, read_fields(metadata["columns"], "columns")
    tables = _tables(metadata)
    names = [name for name in tables if wanted in (None, name, name.rpartition(".")[2])]
    if len(names) != 1:
        raise SpecError(f"say which table is meant; there are: {', '.join(tables) or 'none'}")
    node = tables[names[0]]
    options = {name: value for name, value in node.items() if name in _OPTIONS}
    columns = {name: value for name, value in node.items() if name not in _OPTIONS}
    return options, columns


def _tables(metadata: Fields) -> dict[str, Fields]:
    """Every table, under the name `schema.table`, or `table` in a schema without a name."""
    return {
        f"{schema}.{table}".removeprefix("."): read_fields(node, f"table {table!r}")
        for collection, schemas in metadata.items()
        if collection != "engine"
        for schema, tables in read_fields(schemas, f"collection {collection!r}").items()
        for table, node in read_fields(tables, f"schema {schema!r}").items()
    }


def _unquoted(name: str) -> str:
    """A column's name in the file, without SQL quotes."""
    quoted = len(name) > 2 and _QUOTES.get(name[0]) == name[-1]
    return name[1:-1] if quoted else name


def _protection(options: Fields, columns: dict[str, Fields]) -> Protection | None:
    identifiers = [name for name, fields in columns.items() if _is_identifier(name, fields)]
    by_row = read_flag(options, "row_privacy", what="the table", default=False)
    max_ids = options.get("max_ids")
    max_rows = 1 if max_ids is None else read_whole(max_ids, "max_ids")
    if len(identifiers) > 1:
        raise SpecError(
            f"the columns {', '.join(map(repr, identifiers))} form one private_id, which is not "
            "supported; join them into one column"
        )
    if identifiers and by_row:
        raise SpecError(
            f"row_privacy protects rows, but column {identifiers[0]!r} is a private_id, which protects "
            "people; keep one of them"
        )
    if identifiers:
        return protect_people(max_rows=max_rows)
    if max_rows != 1:
        raise SpecError(
            "max_ids needs a private_id column that identifies people; mark it, or remove max_ids"
        )
    return Protection(unit="row") if by_row else None


def _is_identifier(name: str, fields: Fields) -> bool:
    return read_flag(fields, "private_id", what=f"column {name!r}", default=False)


def _column(name: str, fields: Fields, booleans: Booleans) -> Fields | None:
    """The declaration of one column; None if SmartNoise ignores it."""
    what = f"column {name!r}"
    refuse_unknown(fields, _FIELDS, what)
    if _unquoted(str(fields.get("name", name))) != name:
        raise SpecError(f"{what}: its field name says otherwise; make them agree")
    if _is_identifier(name, fields):
        return {"name": name, "type": "identifier"}
    if fields.get("type") == "unknown":
        return None
    if fields.get("missing_value") is not None:
        raise SpecError(f"{what}: fill missing cells in the file, and drop missing_value")
    column: dict[str, Any] = {"name": name, "nullable": _is_nullable(what, fields)}
    if fields.get("categories") is not None:
        labels = _checked_labels(name, fields, booleans)
        return {**column, "type": "categorical", "values": labels}
    match fields.get("type"):
        case "boolean":
            return {**column, "type": "boolean", "true": [booleans[1]], "false": [booleans[0]]}
        case "int":
            return {**column, "type": "integer", **_bounds(what, fields)}
        case "float":
            return {**column, "type": "real", **_bounds(what, fields)}
        case "string":
            raise SpecError(
                f"{what}: text needs a list of its values, which is never read from the data; add "
                "categories"
            )
        case "datetime":
            return {**column, "type": "datetime", **_moments(what, fields)}
    raise SpecError(f"{what}: type must be int, float, string, boolean, datetime or unknown")


def _is_nullable(what: str, fields: Fields) -> bool:
    """As declared; by default a missing cell is kept as missing."""
    share = fields.get("nullable_proportion")
    default = share is None or read_number(share, f"{what}: nullable_proportion") > 0
    return read_flag(fields, "nullable", what=what, default=default)


def _bounds(what: str, fields: Fields) -> dict[str, Any]:
    if fields.get("lower") is None or fields.get("upper") is None:
        raise SpecError(
            f"{what}: numbers need lower and upper, which are never read from the data; add them"
        )
    read = read_whole if fields["type"] == "int" else read_number
    return {field: read(fields[field], f"{what}: {field}") for field in ("lower", "upper")}


def _moments(what: str, fields: Fields) -> dict[str, Any]:
    """The bounds of a date: Lomas writes them as ISO 8601 text."""
    found = {field: fields.get(field) for field in ("lower", "upper")}
    # YAML reads an unquoted date as one.
    texts = {
        field: bound.isoformat() if isinstance(bound, date) else bound
        for field, bound in found.items()
    }
    if not all(isinstance(bound, str) for bound in texts.values()):
        raise SpecError(
            f"{what}: dates need lower and upper in ISO 8601, such as 2020-01-31, which are never "
            "read from the data; add them"
        )
    return texts


def _checked_labels(name: str, fields: Fields, booleans: Booleans) -> list[str]:
    labels = read_labels(fields["categories"], column=name, booleans=booleans)
    size = fields.get("cardinality")
    if size is not None and read_whole(size, f"column {name!r}: cardinality") != len(labels):
        raise SpecError(
            f"column {name!r}: cardinality is not the number of categories; correct one"
        )
    return labels
