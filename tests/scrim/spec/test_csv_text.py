"""Texts in CSV files: safe in spreadsheets, and readable without loss."""

import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scrim.spec.csv_text import FORMULA_STARTS, escaped, unescaped

ASCII_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
TRICKY = st.text(f"'1.e{FORMULA_STARTS}", max_size=4) | st.text(max_size=4)


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
        ("\uff1d1+1", "'\uff1d1+1"),
        ("\uff0b1", "'\uff0b1"),
        ("\uff0d5", "'\uff0d5"),
        ("\uff20sum", "'\uff20sum"),
        ("'\uff1d1", "''\uff1d1"),
    ],
)
def test_escaping(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_every_character_that_becomes_a_formula_start_is_one() -> None:
    characters = (chr(code) for code in range(sys.maxunicode + 1))
    found = {
        each for each in characters if unicodedata.normalize("NFKC", each).startswith(ASCII_STARTS)
    }
    assert set(FORMULA_STARTS) == found


@given(TRICKY, TRICKY)
def test_different_texts_stay_different(first: str, second: str) -> None:
    assert (escaped(first) == escaped(second)) == (first == second)


@given(TRICKY)
def test_only_numbers_begin_like_formulas(text: str) -> None:
    shown = escaped(text)
    if unicodedata.normalize("NFKC", shown).startswith(ASCII_STARTS):
        float(shown)


@given(TRICKY)
@example("''\uff1d")
def test_what_is_escaped_is_read_as_it_was(text: str) -> None:
    assert unescaped(escaped(text)) == text
