"""Conversion of one column of CSVW metadata."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from scrim.importers.csvw_dates import DATES, date_declaration
from scrim.importers.declaration import (
    Booleans,
    Fields,
    read_fields,
    read_flag,
    read_labels,
    read_list,
    read_number,
    read_whole,
    refuse_unknown,
)
from scrim.spec.errors import SpecError

_WHOLE_TYPES = {
    "integer",
    "long",
    "int",
    "short",
    "byte",
    "nonNegativeInteger",
    "positiveInteger",
    "nonPositiveInteger",
    "negativeInteger",
    "unsignedLong",
    "unsignedInt",
    "unsignedShort",
    "unsignedByte",
}
_REAL = {"decimal", "double", "float", "number"}
_TIME = {
    *DATES,
    "time",
    "duration",
    "dayTimeDuration",
    "yearMonthDuration",
    "gDay",
    "gMonth",
    "gMonthDay",
}

_LOWER = ("minimum", "minInclusive")
_UPPER = ("maximum", "maxInclusive")
_EXCLUSIVE = ("minExclusive", "maxExclusive")
_KEYS = ("keyValues", "publicKeys", "publicPartitions")

# Presentation, hints for dummy data, and bounds on single groups, which ours never exceed.
_IGNORED_OF_COLUMNS = {
    "@id",
    "@type",
    "aboutUrl",
    "dependency",
    "dependencyType",
    "dependsOn",
    "exhaustiveKeys",
    "exhaustivePartitions",
    "how",
    "lang",
    "length",
    "mapping",
    "maxContributions",
    "maxGroupsPerUnit",
    "maxInfluencedPartitions",
    "maxLength",
    "maxNumPartitions",
    "maxPartitionContribution",
    "maxPartitionLength",
    "ordered",
    "propertyUrl",
    "publicLength",
    "rowDependencies",
    "textDirection",
    "valueMap",
    "valueUrl",
}
_KNOWN_OF_COLUMNS = {
    "datatype",
    "default",
    "invariantPublicKeys",
    "name",
    "null",
    "nullable",
    "nullableProportion",
    "partitions",
    "privacyId",
    "required",
    "separator",
    "suppressOutput",
    "titles",
    "virtual",
    *_LOWER,
    *_UPPER,
    *_KEYS,
    *_IGNORED_OF_COLUMNS,
}
_KNOWN_OF_DATATYPE = {
    "@id",
    "@type",
    "base",
    "format",
    "length",
    "maxLength",
    "minLength",
    *_LOWER,
    *_UPPER,
    *_EXCLUSIVE,
}

_CSVW_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_LITERALS = r"([^\\.*+?\[\](){}^$]*)"
_ALTERNATIVES = re.compile(rf"{_LITERALS}|\^?\((?:\?:)?{_LITERALS}\)\$?")


def convert_column(name: str, fields: Fields, booleans: Booleans) -> Fields | None:
    """The declaration of one column; None if it is virtual or suppressed."""
    what = f"column {name!r}"
    refuse_unknown(fields, _KNOWN_OF_COLUMNS, what)
    if any(read_flag(fields, f, what=what, default=False) for f in ("virtual", "suppressOutput")):
        return None
    datatype = _datatype(what, fields)
    base = datatype["base"]
    if fields.get("separator") is not None:
        raise SpecError(
            f"{what}: cells that hold lists are not supported; give each its own column"
        )
    if fields.get("default"):
        raise SpecError(f"{what}: fill empty cells in the file, and drop default")
    column = {"name": name, "nullable": _is_nullable(what, fields), **_missing(what, fields)}
    labels = _labels(name, fields, datatype, booleans)
    if labels is not None and base == "boolean" and len(labels) == 2:
        no, yes = _spelled_booleans(what, datatype, booleans)
        return {**column, "type": "boolean", "true": [yes], "false": [no]}
    if labels is not None:
        return {**column, "type": "categorical", "values": labels}
    if base in _WHOLE_TYPES or base in _REAL:
        kind = "integer" if base in _WHOLE_TYPES else "real"
        return {
            **column,
            "type": kind,
            **_range(what, fields, datatype, whole=base in _WHOLE_TYPES),
        }
    if base in DATES:
        return {**column, **date_declaration(what, {**datatype, **fields}, base, datatype)}
    if base in _TIME:
        raise SpecError(
            f"{what}: only dates, months, years and times of a date are supported; store a number, such "
            "as minutes, with minimum and maximum, or list the keys as keyValues"
        )
    raise SpecError(
        f"{what}: text needs a list of its values, which is never read from the data; add keyValues"
    )


def _datatype(what: str, fields: Fields) -> dict[str, Any]:
    """The datatype as an object; text by default, as in CSVW."""
    given = fields.get("datatype") or "string"
    datatype = (
        {"base": given} if isinstance(given, str) else read_fields(given, f"{what}: datatype")
    )
    refuse_unknown(datatype, _KNOWN_OF_DATATYPE, f"{what}: datatype")
    base = re.split("[:#]", str(datatype.get("base", "string")))[-1]
    return {**datatype, "base": base}


def _is_nullable(what: str, fields: Fields) -> bool:
    """`required` decides, else a declared share of missing cells, else missing is kept as missing."""
    if fields.get("required") is not None:
        return not read_flag(fields, "required", what=what, default=False)
    share = fields.get("nullableProportion")
    default = share is None or read_number(share, f"{what}: nullableProportion") > 0
    return read_flag(fields, "nullable", what=what, default=default)


def _missing(what: str, fields: Fields) -> dict[str, list[str]]:
    """The `null` values of the column; empty cells are missing anyway."""
    given = fields.get("null")
    texts = [given] if isinstance(given, str | None) else read_list(given, f"{what}: null")
    if not all(isinstance(text, str | None) for text in texts):
        raise SpecError(f"{what}: null must be text, or a list of texts")
    found = list(dict.fromkeys(text for text in texts if text is not None))
    return {"missing": found} if any(found) else {}


def _labels(name: str, fields: Fields, datatype: Fields, booleans: Booleans) -> list[str] | None:
    """The listed categories, or None if the column does not list them."""
    what = f"column {name!r}"
    listed = {field: fields[field] for field in _KEYS if fields.get(field) is not None}
    values = [p["partitionValue"] for p in fields.get("partitions") or [] if "partitionValue" in p]
    if values:
        listed["partitions"] = values
    if listed and not read_flag(fields, "invariantPublicKeys", what=what, default=True):
        raise SpecError(f"{what}: its keys depend on the data; declare keys that are public")
    if datatype["base"] == "boolean":
        booleans = _spelled_booleans(what, datatype, booleans)
        return _agreed(name, listed or {"datatype": [False, True]}, booleans)
    if listed:
        return _agreed(name, listed, booleans)
    if datatype["base"] in _WHOLE_TYPES | _REAL | _TIME:
        return None
    return _alternatives(datatype.get("format"))


def _agreed(name: str, listed: Fields, booleans: Booleans) -> list[str]:
    """The categories; several fields may list them, if they agree."""
    found = [read_labels(values, column=name, booleans=booleans) for values in listed.values()]
    if any(set(labels) != set(found[0]) for labels in found):
        raise SpecError(
            f"column {name!r}: {' and '.join(listed)} list different categories; keep one of them"
        )
    return found[0]


def _spelled_booleans(what: str, datatype: Fields, booleans: Booleans) -> Booleans:
    """How cells spell false and true; CSVW writes it as `Y|N`, true first."""
    given = datatype.get("format")
    if given is None:
        return booleans
    spelled = given.split("|") if isinstance(given, str) else []
    if len(spelled) != 2:
        raise SpecError(f"{what}: the format of a boolean must be two texts, such as Y|N")
    return spelled[1], spelled[0]


def _alternatives(pattern: Any) -> list[str] | None:
    """The texts that a pattern of plain alternatives, such as `F|M`, allows; None for others."""
    plain = _ALTERNATIVES.fullmatch(pattern) if isinstance(pattern, str) else None
    if plain is None:
        return None
    texts = (plain[1] or plain[2] or "").split("|")
    return texts if len(texts) > 1 and all(texts) else None


def _range(what: str, fields: Fields, datatype: Fields, *, whole: bool) -> dict[str, Any]:
    """The bounds, and bins if public partitions divide the whole range."""
    if datatype.get("format") is not None:
        raise SpecError(f"{what}: write numbers plainly, with a decimal point, and drop format")
    if any(datatype.get(name) is not None for name in _EXCLUSIVE):
        raise SpecError(f"{what}: bounds belong to the range; give minimum and maximum")
    lower = _bound(what, fields, datatype, _LOWER, whole=whole)
    upper = _bound(what, fields, datatype, _UPPER, whole=whole)
    cuts = _cuts(what, fields.get("partitions") or [], whole=whole)
    if cuts:
        lower, upper = cuts[0] if lower is None else lower, cuts[-1] if upper is None else upper
    if lower is None or upper is None:
        raise SpecError(
            f"{what}: numbers need minimum and maximum, which are never read from the data; add them"
        )
    if not cuts:
        return {"lower": lower, "upper": upper}
    if not cuts[0] <= lower < upper <= cuts[-1]:
        raise SpecError(f"{what}: its partitions must cover minimum to maximum; widen or drop them")
    inside = [cut for cut in cuts if lower < cut < upper]
    return {"lower": lower, "upper": upper, "bins": {"edges": [lower, *inside, upper]}}


def _bound(
    what: str, fields: Fields, datatype: Fields, names: Sequence[str], *, whole: bool
) -> float | None:
    """The bound given by the column or its datatype, under any of its names."""
    given = {
        _number(node[name], f"{what}: {name}", whole=whole)
        for node in (fields, datatype)
        for name in names
        if node.get(name) is not None
    }
    if len(given) > 1:
        raise SpecError(f"{what}: {' and '.join(names)} differ; keep the one that is meant")
    return next(iter(given), None)


def _cuts(what: str, partitions: Sequence[Fields], *, whole: bool) -> list[float]:
    """The edges of adjacent intervals [a, b)."""
    intervals = sorted(_interval(what, partition, whole=whole) for partition in partitions)
    if any(upper != lower for (_, upper), (lower, _) in pairwise(intervals)):
        raise SpecError(f"{what}: its partitions must meet without gaps; correct or drop them")
    return [lower for lower, _ in intervals] + [upper for _, upper in intervals[-1:]]


def _interval(what: str, partition: Fields, *, whole: bool) -> tuple[float, float]:
    if partition.get("lowerInclusive") is False or partition.get("upperInclusive") is True:
        raise SpecError(f"{what}: intervals hold their lower bound, not their upper; shift them")
    lower, upper = (
        _number(partition.get(name, partition.get(other)), f"{what}: {name}", whole=whole)
        for name, other in (("lowerBound", "minimum"), ("upperBound", "maximum"))
    )
    if lower >= upper:
        raise SpecError(f"{what}: the lower bound of a partition must be below its upper bound")
    return lower, upper


def _number(value: Any, what: str, *, whole: bool) -> float:
    """Read a number, which CSVW may write as text."""
    if isinstance(value, str) and _CSVW_NUMBER.fullmatch(value):
        value = float(value)
    return read_whole(value, what) if whole else read_number(value, what)
