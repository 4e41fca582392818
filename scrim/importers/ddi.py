"""DDI Codebook (DDI-C 1.2 to 2.5): the variables of one file, as XML.

From a variable: name, categories and their missing ones, valid and invalid ranges, order, decimals, format.
Frequencies and statistics (`catStat`, `sumStat`) describe the rows of a file, so they are never read.
Ranges must be those that were declared before the data was collected.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree.ElementTree import Element, ParseError, fromstring

from scrim.importers.declaration import Fields, Imported, declare
from scrim.spec.errors import SpecError

MAX_CHARACTERS = 50_000_000
_INTEGER = re.compile(r"[+-]?[0-9]{1,16}")
_XML_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_TIMES = ("date", "time")


def from_ddi(document: str, *, table: str | None = None) -> Imported:
    """Convert the variables of a code book to a schema. `table` picks one of several files, by its id."""
    variables = list(_variables(_parsed(document), table))
    if not variables:
        raise SpecError("the code book describes no variables (dataDscr/var)")
    return Imported(schema=declare([_column(each) for each in variables]), protection=None)


def _parsed(document: str) -> Element:
    if len(document) > MAX_CHARACTERS:
        raise SpecError(f"the code book has more than {MAX_CHARACTERS:,} characters; divide it")
    # Entities can only be defined in a document type, and could expand without end.
    if "<!DOCTYPE" in document:
        raise SpecError("the document has a DOCTYPE, which could define entities; remove it")
    try:
        return fromstring(document)
    except (ParseError, ValueError):
        # Not chained: the message of the parser may quote the document.
        pass
    raise SpecError("the document is not XML; save the code book as DDI Codebook (XML, UTF-8)")


def _variables(root: Element, table: str | None) -> Iterator[Element]:
    if _tag(root) != "codeBook":
        raise SpecError(
            "the document is not a DDI Codebook, which begins with codeBook; export it as DDI Codebook 2.5"
        )
    found = [
        each for part in root if _tag(part) == "dataDscr" for each in part if _tag(each) == "var"
    ]
    files = sorted({name for each in found for name in each.get("files", "").split()})
    if table is None and len(files) > 1:
        raise SpecError(f"say which file is meant; there are: {', '.join(files)}")
    for each in found:
        if table is None or table in each.get("files", "").split():
            yield each


def _column(variable: Element) -> Fields:
    name = (variable.get("name") or "").strip()
    if not name:
        raise SpecError("a variable has no name; give every var the name of its column")
    what = f"column {name!r}"
    values, missing = _categories(variable)
    missing = list(dict.fromkeys([*missing, *_listed(variable, "invalrng")]))
    form = next(iter(_parts(variable, "varFormat")), None)
    is_text = form is not None and form.get("type") == "character"
    kind = "" if form is None else (form.get("category") or "")
    bounds = _bounds(variable)
    column: dict[str, Any] = {"name": name}
    if missing:
        column["missing"] = missing
    if kind in _TIMES:
        raise SpecError(
            f"{what}: a DDI Codebook does not say how dates are written; leave the variable out of the code "
            "book, and add a column of type date with lower, upper and format to the schema"
        )
    if variable.get("intrvl") != "contin" and values:
        return column | {"type": _kind_of_categories(variable), "values": values}
    if is_text:
        raise SpecError(
            f"{what}: text needs a list of its values, which is never read from the data; add its categories"
        )
    if bounds is None:
        raise SpecError(
            f"{what}: numbers need a valid range with min and max (valrng), which is never read from the "
            "data; add it"
        )
    lower, upper = bounds
    if _is_whole(variable, lower, upper):
        return column | {"type": "integer", "lower": int(lower), "upper": int(upper)}
    decimals = (variable.get("dcml") or "").strip()
    if decimals.isdecimal() and int(decimals) > 0:
        column["decimals"] = int(decimals)
    return column | {"type": "real", "lower": float(lower), "upper": float(upper)}


def _categories(variable: Element) -> tuple[list[str], list[str]]:
    """The texts of the valid categories, and of the missing ones."""
    valid: list[str] = []
    missing: list[str] = []
    for category in _parts(variable, "catgry"):
        text = next((_text(each) for each in _parts(category, "catValu")), "")
        if text:
            (missing if category.get("missing") == "Y" else valid).append(text)
    return valid, missing


def _kind_of_categories(variable: Element) -> str:
    return "ordinal" if variable.get("nature") == "ordinal" else "categorical"


def _listed(variable: Element, part: str) -> list[str]:
    """The single values of a range, such as `invalrng`."""
    items = [each for found in _parts(variable, part) for each in _parts(found, "item")]
    return [text for each in items if (text := (each.get("VALUE") or "").strip())]


def _bounds(variable: Element) -> tuple[str, str] | None:
    """The bounds of all valid ranges together; None if there is none that is closed."""
    ranges = [each for found in _parts(variable, "valrng") for each in _parts(found, "range")]
    lows = _numbers(ranges, "min")
    highs = _numbers(ranges, "max")
    if not ranges or len(lows) < len(ranges) or len(highs) < len(ranges):
        return None
    return min(lows, key=float), max(highs, key=float)


def _numbers(ranges: Sequence[Element], field: str) -> list[str]:
    found = [(each.get(field) or "").strip() for each in ranges]
    return [text for text in found if _XML_NUMBER.fullmatch(text)]


def _is_whole(variable: Element, lower: str, upper: str) -> bool:
    """Whether the numbers are whole: by unit, by decimals, or as their bounds are written."""
    units = {each.get("UNITS") for found in _parts(variable, "valrng") for each in found}
    are_whole = bool(_INTEGER.fullmatch(lower) and _INTEGER.fullmatch(upper))
    if "REAL" in units or not are_whole:
        return False
    return variable.get("dcml") in (None, "", "0")


def _parts(node: Element, tag: str) -> list[Element]:
    return [each for each in node if _tag(each) == tag]


def _tag(node: Element) -> str:
    """The name of an element without its namespace."""
    return str(node.tag).rpartition("}")[2]


def _text(node: Element) -> str:
    return " ".join("".join(node.itertext()).split())
