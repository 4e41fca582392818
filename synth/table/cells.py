"""Reading the cells of a file: Arrow arrays of any supported type, converted to text or numbers.

Every rule reads one cell at a time. If a cell's meaning depended on its neighbours, one person
could change how another person's row is read, and no sensitivity bound would hold.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from scrim.spec.columns import IntegerColumn, RealColumn
from scrim.spec.columns.missing import as_number
from synth.missing import number_of_kind
from synth.table.chunk import TableError

Floats = npt.NDArray[np.float64]

_NUMBER_TEXT = r"^[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|(?i:inf|infinity))$"
_MIDNIGHT = r" 00:00:00(?:\.0+)?$"
_LARGEST_EXACT = 2.0**53
"""Whole numbers up to this have an exact float."""

MAX_CELL_BYTES = 2**20
"""Longest text of a cell; a declared value has at most 1,000 characters."""


def texts_of(cells: Any, *, column: str) -> Any:
    """The cells as Arrow strings, missing as null."""
    cells = plain(cells)
    kind = cells.type
    if pa.types.is_floating(kind):
        return _text_of_floats(cells)
    if pa.types.is_decimal(kind):
        return _text_of_decimals(cells)
    if pa.types.is_timestamp(kind) and kind.tz is None:
        return pc.replace_substring_regex(pc.cast(cells, pa.string()), _MIDNIGHT, "")
    if _is_text(kind):
        return _decoded(cells, column)
    if (
        pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_date(kind)
        or pa.types.is_null(kind)
    ):
        return pc.cast(cells, pa.string())
    raise _unsupported(kind, column, "text, whole numbers, booleans or dates")


def numbers_of(cells: Any, *, column: str) -> npt.NDArray[np.float64]:
    """The cells as floats, missing and unreadable ones as NaN, infinities kept."""
    cells = plain(cells)
    kind = cells.type
    if _is_text(kind):
        cells = _parsed(_decoded(cells, column))
    elif pa.types.is_decimal(kind):
        # Arrow's direct conversion may not give the nearest float; conversion through text does.
        cells = pc.cast(pc.cast(cells, pa.string()), pa.float64())
    elif (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_null(kind)
    ):
        # Unsafe only because integers beyond 2**53 are rounded; every declared bound is within it.
        cells = pc.cast(cells, pa.float64(), safe=False)
    else:
        raise _unsupported(kind, column, "numbers, or text that holds numbers")
    return np.asarray(cells.to_numpy(zero_copy_only=False), np.float64)


def numbers_and_kinds(cells: Any, column: IntegerColumn | RealColumn) -> Floats:
    """The cells as numbers between the bounds, missing ones of each kind as in synth/missing.py."""
    cells = plain(cells)
    numbers = numbers_of(cells, column=column.name)
    if column.missing is None:
        return numbers
    # Clamped first, so that no number is read as a kind.
    found = np.clip(numbers, column.lower, column.upper)
    texts = _trimmed(cells, column.name) if _is_text(cells.type) else None
    for spelling, kind in column.kind_of_spelling.items():
        number = as_number(spelling)
        is_kind = np.zeros(len(numbers), np.bool_) if number is None else numbers == number
        if texts is not None:
            is_kind |= np.asarray(pc.fill_null(pc.equal(texts, spelling), False))
        index = column.kinds.index(kind) if kind in column.kinds else 0
        found[is_kind] = number_of_kind(index)
    return found


def _trimmed(cells: Any, column: str) -> Any:
    return pc.utf8_trim_whitespace(_decoded(cells, column))


def is_boolean(cells: Any) -> bool:
    """Whether the cells are of type boolean."""
    return bool(pa.types.is_boolean(cells.type))


def longest_text(cells: Any, *, column: str) -> int:
    """The length of the longest text; refuse cells that are too long."""
    longest = pc.max(pc.binary_length(cells)).as_py() or 0
    if longest > MAX_CELL_BYTES:
        raise TableError(
            f"column {column!r} holds a cell of more than {MAX_CELL_BYTES // 2**20} MiB; shorten it, or "
            "leave the column out"
        )
    return int(longest)


def plain(cells: Any) -> Any:
    """The cells without a dictionary or an extension type."""
    if isinstance(cells.type, pa.BaseExtensionType):
        cells = cells.storage
    return cells.dictionary_decode() if pa.types.is_dictionary(cells.type) else cells


def _is_text(kind: Any) -> bool:
    return any(
        test(kind)
        for test in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_string_view,
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_binary_view,
        )
    )


def _decoded(cells: Any, column: str) -> Any:
    try:
        texts = pc.cast(cells, pa.string())
        longest_text(texts, column=column)
        # A file may claim that its bytes are UTF-8 when they are not.
        texts.validate(full=True)
        return texts
    except pa.ArrowInvalid:
        pass
    raise TableError(f"column {column!r} holds text that is not UTF-8; save the file as UTF-8")


def _parsed(texts: Any) -> Any:
    """Parse numbers from text: all at once if every cell is a number, else cell by cell."""
    try:
        return pc.cast(texts, pa.float64())
    except pa.ArrowInvalid:
        pass
    trimmed = pc.utf8_trim_whitespace(texts)
    readable = pc.match_substring_regex(trimmed, _NUMBER_TEXT)
    return pc.cast(pc.if_else(readable, trimmed, pa.scalar(None, pa.string())), pa.float64())


def _text_of_floats(cells: Any) -> Any:
    """Whole floats as integers ("7", not "7.0" or "1e+15"); others as the shortest exact text."""
    cells = pc.if_else(pc.is_nan(cells), pa.scalar(None, cells.type), cells)
    wide = pc.cast(cells, pa.float64())
    whole = pc.and_(pc.equal(pc.trunc(wide), wide), pc.less(pc.abs(wide), _LARGEST_EXACT))
    whole_text = pc.cast(pc.cast(pc.if_else(whole, wide, 0.0), pa.int64()), pa.string())
    return pc.if_else(whole, whole_text, pc.cast(cells, pa.string()))


def _text_of_decimals(cells: Any) -> Any:
    texts = pc.cast(cells, pa.string())
    return pc.replace_substring_regex(texts, r"\.?0+$", "") if cells.type.scale > 0 else texts


def _unsupported(kind: Any, column: str, supported: str) -> TableError:
    # The name of a nested type lists the fields inside it, so it is not quoted.
    found = "nested values" if pa.types.is_nested(kind) else f"values of type {kind}"
    return TableError(
        f"column {column!r} holds {found}, which are not supported; store {supported}"
    )
