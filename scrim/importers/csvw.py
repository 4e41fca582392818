"""CSVW metadata with the eyes-off extension (CSVW-EO), formerly CSVW-SAFE and CSVW-DP.

From CSVW (W3C, Metadata Vocabulary for Tabular Data): table or table group, inherited properties,
names and titles, datatypes with bounds, `required`, `null`, virtual and suppressed columns. From the
extension: `privacyUnit`, `privacyId`, `maxContributions`, public keys and partitions, column bounds.
Terms may carry a prefix (`csvw-eo:`) and the part names of older drafts (`bounds.`). How a file is
laid out (`dialect`) is not part of a schema.
"""

import re
from typing import Any

from scrim.importers.csvw_column import convert_column
from scrim.importers.declaration import (
    Booleans,
    Fields,
    Imported,
    declare,
    parse_json,
    protect_people,
    read_fields,
    read_flag,
    read_list,
    read_whole,
    refuse_unknown,
)
from scrim.spec.errors import SpecError
from scrim.spec.population import Protection

_OURS = re.compile(
    r"(?:https?://(?=[^#]*csvw)[^#]*+#|(?:csvw|csvw-eo|csvw-safe|csvw-dp|dp):)?[^:#]+"
)
_EXTENSION = {
    "privacyUnit",
    "privacyId",
    "maxContributions",
    "keyValues",
    "publicKeys",
    "publicPartitions",
    "partitions",
    "invariantPublicKeys",
}
_INHERITED = ("datatype", "default", "null", "required", "separator")
# Location, layout and presentation of the file, and bounds that ours never exceed.
_IGNORED_OF_TABLES = {
    "@context",
    "@id",
    "@type",
    "aboutUrl",
    "additionalInformation",
    "description",
    "dialect",
    "foreignKeys",
    "lang",
    "length",
    "maxLength",
    "maxTableLength",
    "name",
    "notes",
    "primaryKey",
    "propertyUrl",
    "publicLength",
    "rowTitles",
    "suppressOutput",
    "tableDirection",
    "tableLength",
    "textDirection",
    "title",
    "transformations",
    "url",
    "valueUrl",
}
_KNOWN_OF_TABLES = {
    "columns",
    "maxContributions",
    "privacyUnit",
    "tables",
    "tableSchema",
    *_INHERITED,
    *_IGNORED_OF_TABLES,
}


def from_csvw_eo(document: Fields | str, *, booleans: Booleans = ("false", "true")) -> Imported:
    """Convert the metadata of a single table to a schema and its protection.

    `booleans` is how the file spells false and true, if the metadata does not say.
    """
    group = terms_of(parse_json(document), "the document")
    table = _only_table(group)
    schema = terms_of(table.get("tableSchema"), "tableSchema")
    # The drafts put the table's terms on the table or on its schema.
    about = {**group, **schema, **table}
    refuse_unknown(about, _KNOWN_OF_TABLES, "the table")
    above = {
        term: node[term] for node in (group, table, schema) for term in _INHERITED if term in node
    }
    columns = {}
    for position, node in enumerate(read_list(schema.get("columns"), "tableSchema.columns")):
        fields = terms_of(node, f"column number {position}")
        fields = {**fields, "partitions": _partitions(fields, position)}
        columns[_identity(fields, position)] = {**above, **fields}
    if len(columns) < len(schema["columns"]):
        raise SpecError("two columns have the same name; rename one")
    unit = _privacy_unit(about, columns)
    converted = [
        {"name": _name_in_file(name, fields), "type": "identifier"}
        if name == unit
        else convert_column(_name_in_file(name, fields), fields, booleans)
        for name, fields in columns.items()
    ]
    return Imported(
        schema=declare([column for column in converted if column is not None]),
        protection=_protection(unit, about.get("maxContributions")),
    )


def terms_of(node: Any, what: str) -> dict[str, Any]:
    """The terms of CSVW and its extension, without prefixes; other vocabularies are annotations."""
    found: dict[str, Any] = {}
    for key, value in read_fields(node, what).items():
        # Older drafts group terms, as in bounds.maxContributions.
        term = re.split("[:#.]", key)[-1]
        if _OURS.fullmatch(key) is None:
            if term in _EXTENSION:
                raise SpecError(f"{what}: write {key!r} as csvw-eo:{term}")
        elif term in found:
            raise SpecError(f"{what} gives {term!r} twice; keep the one that is meant")
        else:
            found[term] = value
    return found


def _only_table(group: Fields) -> Fields:
    if "tables" not in group:
        return group
    tables = read_list(group["tables"], "tables")
    if len(tables) != 1:
        raise SpecError(f"the document describes {len(tables)} tables; give the one that is meant")
    return terms_of(tables[0], "the table")


def _partitions(fields: Fields, position: int) -> list[Fields] | None:
    """Each partition's predicate, which some documents write on the partition itself."""
    what = f"column number {position}: a partition"
    if fields.get("partitions") is None:
        return None
    partitions = [terms_of(node, what) for node in read_list(fields["partitions"], "partitions")]
    return [
        terms_of(partition["predicate"], what) if "predicate" in partition else partition
        for partition in partitions
    ]


def _identity(fields: Fields, position: int) -> str:
    """The column's name in the metadata: its name, else its title."""
    name = fields.get("name", next(iter(_titles(fields)), None))
    if not isinstance(name, str):
        raise SpecError(f"column number {position} needs a name")
    return name


def _name_in_file(name: str, fields: Fields) -> str:
    """The column's name in the header of the file: its title, else its name."""
    titles = _titles(fields)
    if not titles or name in titles:
        return name
    if len(titles) > 1:
        raise SpecError(f"column {name!r} has several titles; keep the one in the file's header")
    return titles[0]


def _titles(fields: Fields) -> list[str]:
    """Titles are a text, a list of texts, or either of these by language."""
    titles = fields.get("titles")
    by_language = list(titles.values()) if isinstance(titles, dict) else [titles]
    nested = [entry if isinstance(entry, list) else [entry] for entry in by_language]
    return list(dict.fromkeys(t for entry in nested for t in entry if isinstance(t, str)))


def _privacy_unit(about: Fields, columns: dict[str, dict[str, Any]]) -> str | None:
    """The column that identifies the protected people."""
    marked = [
        name
        for name, fields in columns.items()
        if read_flag(fields, "privacyId", what=f"column {name!r}", default=False)
    ]
    unit = about.get("privacyUnit")
    if unit is not None and unit not in list(columns):
        raise SpecError("privacyUnit must be the name of a column; declare that column")
    named = dict.fromkeys([*marked, *([] if unit is None else [unit])])
    if len(named) > 1:
        raise SpecError(
            f"the columns {', '.join(map(repr, named))} are privacy units, and only one can be; keep the "
            "one that is meant"
        )
    return next(iter(named), None)


def _protection(unit: str | None, declared: Any) -> Protection | None:
    if declared is None:
        if unit is not None:
            raise SpecError(
                f"column {unit!r} is the privacy unit, but maxContributions is missing; declare how many "
                "rows of one unit there may be"
            )
        return None
    max_rows = read_whole(declared, "maxContributions")
    if unit is not None:
        return protect_people(max_rows=max_rows)
    if max_rows != 1:
        raise SpecError(
            "maxContributions needs a column that identifies people; declare it as privacyUnit"
        )
    return Protection(unit="row")
