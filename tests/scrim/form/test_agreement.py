"""The local check agrees with the codecs that read cells in the service."""

from itertools import chain

import pyarrow as pa
import pytest

from scrim.form.cells import reader_of
from scrim.spec.columns import LabelledColumn, OrdinalColumn
from scrim.spec.schema import Attribute
from synth.table.encoding import attribute_codec
from tests.scrim.column_types import CSV, SCHEMA

CELLS = sorted(
    {
        *chain.from_iterable(line.split(",") for line in CSV.splitlines()[1:]),
        *(" 999 ", "999.0", "+5", ".5", "5.", "1e2", "1e400", "inf", "-Infinity", "nan", "1,5", "0x1"),
        *("٣", "119.5", "79.9", "80", "200", "500", "-0", "  ", "east ", "EAST", "yes ", "true"),
        *("2000-01", "2000", "2000-13-01", "2020-12-31", "2021-01-01", "31.12.2023 23:59", "A0"),
    }
)  # fmt: skip


@pytest.mark.parametrize("column", SCHEMA.attributes, ids=lambda column: column.type)
def test_each_verdict_is_what_becomes_of_the_cell(column: Attribute) -> None:
    read, codec = reader_of(column), attribute_codec(column)
    stored = codec.encode(pa.array(CELLS, pa.string()))
    released = codec.decode(stored).to_pylist()
    numbers = codec.numbers(stored)
    for cell, value, number in zip(CELLS, released, numbers, strict=True):
        verdict = read(cell)
        told = f"{column.type}: {cell!r} is {verdict}, released as {value!r}"
        if isinstance(column, LabelledColumn | OrdinalColumn):
            assert (verdict == "missing") <= (value is None), told
            assert (verdict == "undeclared") <= (value in (None, "other")), told
            assert (verdict == "fits") == (value not in (None, "other")), told
            continue
        assert (value is None) == (verdict in ("missing", "unreadable")), told
        assert (verdict == "below") <= (number == column.line.lower), told
        assert (verdict == "above") <= (number == column.line.upper), told
