"""Domains of mbi: each attribute becomes whole numbers from 0."""

import json
import math
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrim.importers import from_mbi_domain
from scrim.spec.columns import MAX_CODES, IntegerColumn
from scrim.spec.errors import SpecError
from scrim.spec.schema import Schema

from .support import json_values

ADULT = {"age": 85, "workclass": 9, "sex": 2, "income>50K": 2}


def test_an_mbi_domain() -> None:
    schema = from_mbi_domain(ADULT)
    assert [column.name for column in schema.attributes] == list(ADULT)
    assert [column.size for column in schema.attributes] == list(ADULT.values())
    age = schema.attribute("age")
    assert isinstance(age, IntegerColumn)
    assert (age.lower, age.upper, age.nullable) == (0, 84, False)
    assert from_mbi_domain(json.dumps(ADULT)) == schema


@given(
    st.dictionaries(
        st.text("abc", min_size=1, max_size=3), st.integers(1, 200), min_size=1, max_size=5
    )
)
def test_an_mbi_domain_keeps_every_size(domain: dict[str, int]) -> None:
    assert {c.name: c.size for c in from_mbi_domain(domain).attributes} == domain


@pytest.mark.parametrize(
    ("domain", "message"),
    [
        ({"age": 0}, "column 'age' must have between 1 and"),
        ({"age": MAX_CODES + 1}, "column 'age' must have between 1 and 100,000 values; group"),
        ({"age": "85"}, "column 'age': its number of values must be a number"),
        ({"age": True}, "column 'age'"),
        ({"age": 8.5}, "whole number"),
        ({"age": math.nan}, "column 'age'"),
        ({"age": 10**400}, "column 'age'"),
        ({"age": [0, 1]}, "column 'age'"),
        ({"a\nb": 2}, '"name" contains characters that are not allowed'),
        ({}, "at least 1 item"),
        ([["age", 85]], "must be an object"),
        ('{"age": 85, "age": 3}', "same key twice"),
        ('{"age": NaN}', "NaN is not a JSON number"),
        ('{"age": 85', "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"age": ' + "9" * 5000 + "}", "not JSON"),
    ],
)
def test_refused_mbi_domains(domain: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        from_mbi_domain(domain)


@given(json_values)
def test_whatever_mbi_says_is_imported_or_refused(value: Any) -> None:
    for document in (value, {"age": value}):
        with suppress(SpecError):
            assert isinstance(from_mbi_domain(document), Schema)
