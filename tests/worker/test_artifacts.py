"""Files that no spreadsheet runs, and that hold what was released."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.models.released import AnswerTable
from synth.spec.schema import Schema
from synth.table import Chunk, draw_values
from worker import artifacts
from worker.artifacts import answers_as_csv, escaped, rows_as_csv

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
TRICKY = st.text("'=+-@\t\r\n1.e", max_size=4) | st.text(max_size=4)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("=1+1", "'=1+1"),
        ("@sum", "'@sum"),
        ("\tx", "'\tx"),
        ("-dash", "'-dash"),
        ("'=1", "''=1"),
        ("-5", "-5"),
        ("+3.5e-2", "+3.5e-2"),
        ("-5)", "'-5)"),
        ("a=b", "a=b"),
        ("'s-Hertogenbosch", "'s-Hertogenbosch"),
        ("", ""),
    ],
)
def test_escaping(text: str, shown: str) -> None:
    assert escaped(text) == shown


@given(TRICKY, TRICKY)
def test_different_texts_stay_different(first: str, second: str) -> None:
    assert (escaped(first) == escaped(second)) == (first == second)


@given(TRICKY)
def test_only_numbers_begin_like_formulas(text: str) -> None:
    shown = escaped(text)
    if shown.startswith(FORMULA_STARTS):
        float(shown)


def make_rows(count: int) -> tuple[Schema, Chunk]:
    schema = Schema.model_validate(
        {
            "columns": [
                {"name": "=cmd", "type": "categorical", "values": ["=1", "b"], "other": "+x"},
                {"name": "n", "type": "integer", "lower": -5, "upper": 5, "bins": {"width": 1}},
                {"name": "pid", "type": "identifier"},
            ]
        }
    )
    rng = np.random.default_rng(0)
    codes = {c.name: rng.integers(c.size, size=count) for c in schema.attributes}
    return schema, draw_values(schema, codes, rng)


def test_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    schema, rows = make_rows(100)
    whole = b"".join(rows_as_csv(schema, rows))
    monkeypatch.setattr(artifacts, "_ROWS_AT_ONCE", 7)
    assert b"".join(rows_as_csv(schema, rows)) == whole
    header, *body = csv.reader(io.StringIO(whole.decode()))
    assert header == ["'=cmd", "n"]
    assert len(body) == 100
    assert {line[0] for line in body} == {"'=1", "b", "'+x", ""}
    assert {"-5", "5", ""} <= {line[1] for line in body}


def test_no_rows_are_a_header() -> None:
    assert b"".join(rows_as_csv(*make_rows(0))) == b"'=cmd,n\n"


def test_answers() -> None:
    table = AnswerTable(
        ["=a,b", "c"], ["=a=1 & b=2", 'c="x"'], np.array([0.25, -0.5]), np.array([5.0, -10]), None
    )
    header, first, second = csv.reader(io.StringIO(b"".join(answers_as_csv(table)).decode()))
    assert header == ["item", "query", "fraction", "count", "standard_error"]
    assert first == ["'=a,b", "'=a=1 & b=2", "0.25", "5.0", ""]
    assert second == ["c", 'c="x"', "-0.5", "-10.0", ""]
